import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtudeError } from '@etude/contracts/errors';
import { metricsContentType, renderMetrics, startProcessMetrics } from './metrics.js';

/** Resolves to a note for operators, or to nothing, if the part works. Otherwise throws an error with the reason. */
export type HealthCheck = () => Promise<string | void>;

const CHECK_TIMEOUT_MS = 3_000;

async function outcome(check: HealthCheck) {
  const late = sleep(CHECK_TIMEOUT_MS, { ok: false, said: `no answer within ${CHECK_TIMEOUT_MS} ms` }, { ref: false });
  const done = check().then((note) => ({ ok: true, said: note ? `ok: ${note}` : 'ok' }));
  return Promise.race([done, late]).catch((error: unknown) => ({
    ok: false,
    said: error instanceof Error ? error.message : String(error),
  }));
}

/** The checks of one service. A closing service is never ready. */
export class HealthChecks {
  #closing = false;

  constructor(private readonly checks: Readonly<Record<string, HealthCheck>>) {}

  /** By name of the check: 'ok', 'ok: ' with a note, or the reason of the failure. */
  async readiness(): Promise<{ readonly ready: boolean; readonly checks: Readonly<Record<string, string>> }> {
    if (this.#closing) return { ready: false, checks: { service: 'is shutting down' } };
    const entries = await Promise.all(Object.entries(this.checks).map(async ([name, check]) => [name, await outcome(check)] as const));
    return { ready: entries.every(([, { ok }]) => ok), checks: Object.fromEntries(entries.map(([name, { said }]) => [name, said])) };
  }

  close(): void {
    this.#closing = true;
  }
}

function send(response: ServerResponse, status: number, body: string, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
}

async function answer(path: string, response: ServerResponse, health: HealthChecks): Promise<void> {
  if (path === '/healthz') return send(response, 200, '{"alive":true}');
  if (path === '/readyz') {
    const readiness = await health.readiness();
    return send(response, readiness.ready ? 200 : 503, JSON.stringify(readiness));
  }
  if (path === '/metrics') return send(response, 200, await renderMetrics(), metricsContentType());
  return send(response, 404, '{"error":"There are /healthz, /readyz and /metrics."}');
}

/**
 * Serves `/healthz` (alive), `/readyz` (the result of every check; 503 if one fails) and `/metrics`.
 *
 * Uses Node's own server, since a web framework would cost every service memory for three routes.
 * @throws EtudeError FAILED_PRECONDITION if the port is taken or may not be used
 */
export async function startHealthServer(health: HealthChecks, host: string, port: number): Promise<Server> {
  startProcessMetrics();
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    answer(path, response, health).catch((error: unknown) => {
      send(response, 500, JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
    });
  });
  await listenOn(server, { host, port, setting: 'ETUDE_HTTP_PORT' });
  return server;
}

/** @throws EtudeError FAILED_PRECONDITION that names the setting of the port */
export async function listenOn(
  server: Server,
  { host, port, setting }: { readonly host: string; readonly port: number; readonly setting: string },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(portError(error, host, port, setting)));
    server.listen(port, host, resolve);
  });
}

export function portError(error: Error, host: string, port: number, setting: string): EtudeError {
  const why = error.message.includes('EADDRINUSE') ? 'is taken by another process' : `could not be opened (${error.message})`;
  const message = `Port ${port} on ${host} ${why}. Stop what uses it, or set ${setting} to another port.`;
  return new EtudeError('FAILED_PRECONDITION', message, {}, { cause: error });
}
