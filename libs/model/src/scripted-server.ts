import { EtudeError } from '@etude/contracts/errors';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { checkScript, loadScript, type ScriptInput } from './script.js';
import type { ScriptedCall } from './script-matching.js';
import { refuse, ScriptedModel, sendJson } from './scripted-model.js';

export type ScriptedModelOptions = ({ readonly scriptPath: string } | { readonly script: ScriptInput }) & {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
};

export interface RunningScriptedModel {
  /** The value for OPENAI_BASE_URL; it ends with /v1. */
  readonly url: string;
  readonly port: number;
  /** `scripted/<name of the script>`. */
  readonly model: string;
  /** Requests for chat completions so far. */
  calls(): readonly ScriptedCall[];
  /** Stops the server and ends every connection. */
  close(): Promise<void>;
}

/**
 * Starts an HTTP server that speaks OpenAI's protocol and answers from a script. Every answer says that it comes from no model:
 * `system_fingerprint` is "scripted", and the header `x-etude-scripted` is 1.
 *
 * @throws EtudeError INVALID_ARGUMENT when the script is wrong, FAILED_PRECONDITION when the port is taken
 */
export async function startScriptedModel(options: ScriptedModelOptions): Promise<RunningScriptedModel> {
  const script = 'scriptPath' in options ? await loadScript(options.scriptPath) : checkScript(options.script);
  const model = new ScriptedModel(script, 'scriptPath' in options ? options.scriptPath : 'the script');
  const server = createServer((request, response) => {
    serve(model, request, response).catch((error: unknown) => fail(response, error));
  });
  const { host = '127.0.0.1', port = 0 } = options;
  await listen(server, host, port);
  const actual = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${actual}/v1`,
    port: actual,
    model: model.name,
    calls: () => [...model.calls.list],
    async close() {
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    const what = taken ? 'is taken; name another, or 0 for any free one' : `can't be opened: ${(error as Error).message}`;
    throw new EtudeError('FAILED_PRECONDITION', `port ${port} on ${host} ${what}`, {}, { cause: error });
  }
}

async function serve(model: ScriptedModel, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.setHeader('x-etude-scripted', '1');
  const path = new URL(request.url ?? '/', 'http://scripted').pathname.replace(/\/$/, '');
  const route = `${request.method} ${path}`;
  if (route === 'GET /v1/models') return sendJson(response, 200, model.list());
  if (route === 'GET /scripted/calls')
    return sendJson(response, 200, { model: model.name, total: model.calls.total, calls: model.calls.list });
  if (route !== 'POST /v1/chat/completions') {
    request.resume();
    return refuse(response, 404, `${route} is not served here; there are POST /v1/chat/completions, GET /v1/models, GET /scripted/calls`);
  }
  const body = await json(request).catch((error: Error) => error);
  if (body instanceof Error) return refuse(response, 400, `the request is not JSON: ${body.message}`);
  return model.chat(body, response);
}

/** Answers an error of this server with a status. Does nothing if the caller went away. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return;
  if (response.headersSent) response.destroy();
  else refuse(response, 500, `the scripted model failed: ${(error as Error).message}`);
}
