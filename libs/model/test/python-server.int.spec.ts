import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ask, chatModel, never } from './raw-server.js';

/** A minimal server without streams, usage, ids, model names and threads. */
const SERVER = `
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = sys.argv[1]
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        body = json.dumps({"choices": [{"message": {"content": "heard " + asked}}]}).encode()
        self.send_response(200)
        if sys.argv[1] == "HTTP/1.1":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
`;

async function pythonServer(protocol: string): Promise<string> {
  const child = spawn('/usr/bin/python3', ['-I', '-S', '-c', SERVER, protocol], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const [port] = (await once(createInterface(child.stdout), 'line')) as [string];
  return `http://127.0.0.1:${port}/v1`;
}

describe("servers written with Python's http.server", () => {
  it.each(['HTTP/1.0', 'HTTP/1.1'])('serve two clients although they have one thread (%s)', async (protocol) => {
    const url = await pythonServer(protocol);
    const one = chatModel(url);
    const other = chatModel(url);
    for (const [i, model] of [one, other, one].entries()) {
      expect((await model.chat(ask(`ünï ${i}`), never())).text).toBe(`heard ünï ${i}`);
    }
  });
});
