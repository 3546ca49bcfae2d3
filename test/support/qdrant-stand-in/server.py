"""Stands in for a Qdrant server in tests: the REST routes that Etude calls, over Qdrant's engine (`edge.py`) or what does in
Python what the engine does (`local.py`).

Usage: server.py --port PORT (--engine local | --engine edge --folder FOLDER) [--version 1.18.2] [--api-key KEY] [--certificate FILE --key FILE]
Prints "ready" once it listens on loopback. FOLDER is where the engine keeps its files; they are not found again.

One tenant's document frequencies (`params.idf`) came with 1.19.
"""

import argparse
import json
import ssl
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from answers import Missing, Refused, Taken
from routes import find_route

BODY_BYTES_MAX = 32 * 1024 * 1024


def open_database(options):
    if options.engine == "edge":
        from edge import EdgeDatabase

        return EdgeDatabase(options.folder)
    from local import LocalDatabase

    return LocalDatabase()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, options):
        super().__init__(("127.0.0.1", options.port), Handler)
        self.options = options
        self.database = open_database(options)
        # One request at a time, as the update queue of a shard has it.
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else the kernel holds small answers back for 40 ms.
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def answer(self):
        path = urlsplit(self.path).path
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        if length > BODY_BYTES_MAX:
            return self.reply(413, {"status": {"error": f"JSON payload ({length} bytes) is larger than allowed (limit: {BODY_BYTES_MAX} bytes)."}})
        if path == "/":
            return self.reply(200, {"title": "qdrant - vector search engine", "version": self.server.options.version})
        if self.server.options.api_key and self.headers.get("api-key") != self.server.options.api_key:
            return self.reply(401, {"status": {"error": "Must provide an API key or an Authorization bearer token"}})
        status, result = self.result(path, body)
        return self.reply(status, {"result": result, "status": "ok", "time": 0.0} if status == 200 else {"status": {"error": result}, "time": 0.0})

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer

    def result(self, path, body):
        route = find_route(self.command, [unquote(part) for part in path.strip("/").split("/")])
        if route is None:
            return 404, f"no such route here: {self.command} {path}"
        try:
            # The server reads bytes as UTF-8 and refuses halves of surrogate pairs, which Python's parser lets pass.
            request = json.loads(body.decode("utf-8")) if body else {}
            json.dumps(request, ensure_ascii=False).encode("utf-8")
            with self.server.lock:
                return 200, route(self.server, request)
        except Missing as error:
            return 404, str(error)
        except Taken as error:
            return 409, str(error)
        except KeyError as error:
            return 404, f"Not found: No point with id {error.args[0]} found"
        except ValidationError as error:
            return 422, f"Validation error in JSON body: {error}"
        except (Refused, ValueError, TypeError) as error:
            return 400, f"Wrong input: {error}"
        except Exception as error:
            # The engine raises this one class for everything that it refuses.
            return (404, f"Not found: {error} found") if str(error).startswith("No point with id") else (400, f"Wrong input: {error}")

    def reply(self, status, answer):
        data = json.dumps(answer, allow_nan=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--engine", choices=["edge", "local"], required=True)
    parser.add_argument("--folder")
    parser.add_argument("--version", default="1.18.2")
    parser.add_argument("--api-key")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    server = Server(options)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("ready", flush=True)
    # Ends with the process that started it, however that ends.
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
