"""Stands in for a Qdrant server in tests: serves the REST routes that Etude calls, with Qdrant's engine (`edge.py`).

Usage: server.py --port PORT --folder FOLDER [--api-key KEY] [--certificate FILE --key FILE]
Prints "ready" once it listens on loopback. The engine keeps its files in FOLDER. A later start doesn't read them.
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
from edge import EdgeDatabase
from routes import find_route

BODY_BYTES_MAX = 32 * 1024 * 1024
VERSION = "1.18.2"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, options):
        super().__init__(("127.0.0.1", options.port), Handler)
        self.options = options
        self.database = EdgeDatabase(options.folder)
        # Handles one request at a time, like the update queue of a shard.
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise the kernel delays small answers by 40 ms.
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
            return self.reply(200, {"title": "qdrant - vector search engine", "version": VERSION})
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
            # Python's parser accepts halves of surrogate pairs. Qdrant refuses them, because it reads bytes as UTF-8.
            request = json.loads(body.decode("utf-8")) if body else {}
            json.dumps(request, ensure_ascii=False).encode("utf-8")
            with self.server.lock:
                return 200, route(self.server, request)
        except Missing as error:
            return 404, str(error)
        except Taken as error:
            return 409, str(error)
        except ValidationError as error:
            return 422, f"Validation error in JSON body: {error}"
        except (Refused, ValueError, TypeError) as error:
            return 400, f"Wrong input: {error}"
        except Exception as error:
            # The engine raises the base class for every refusal.
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
    parser.add_argument("--folder", required=True)
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
    # Ends when the process that started it ends.
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
