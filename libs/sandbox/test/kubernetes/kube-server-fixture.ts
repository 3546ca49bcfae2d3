import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { KubeApi } from '../../src/kubernetes/kube-api.js';

interface StoredPod {
  readonly name: string;
  readonly uid: string;
  readonly version: number;
  readonly phase: string;
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;
type Kind = 'list' | 'watch' | 'get' | 'create' | 'delete' | 'patch';

/** An API server for pods only, with real sockets, versions, watches and history, and faults on request. */
export class KubeServerFixture {
  readonly asked: Array<{ readonly kind: Kind; readonly url: URL }> = [];
  readonly #pods = new Map<string, StoredPod>();
  readonly #watchers = new Set<ServerResponse>();
  readonly #faults: Array<{ readonly kind: Kind; readonly answer: Answer }> = [];
  #history: Array<{ readonly version: number; readonly line: string }> = [];
  #version = 100;
  #uids = 0;
  /** A watch from an older version gets 410. */
  #compacted = 0;
  /** Watches stay open and get no events. */
  muted = false;

  private constructor(private readonly server: Server) {
    server.on('connection', (socket) => socket.on('error', () => undefined));
    server.on('request', (request, response) => this.#answer(request, response));
  }

  static async start(): Promise<KubeServerFixture> {
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    return new KubeServerFixture(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get version(): string {
    return String(this.#version);
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  count(kind: Kind): number {
    return this.asked.filter((asked) => asked.kind === kind).length;
  }

  /** The expected state of a watch: name to uid, phase and version. */
  get truth(): Record<string, string> {
    return Object.fromEntries([...this.#pods.values()].map((pod) => [pod.name, `${pod.uid} ${pod.phase} ${pod.version}`]));
  }

  api(timeoutMs = 60_000): KubeApi {
    return apiOf(this.url, timeoutMs);
  }

  put(name: string, phase = 'Running'): void {
    const before = this.#pods.get(name);
    const pod = { name, uid: before?.uid ?? `uid-${++this.#uids}`, version: ++this.#version, phase };
    this.#pods.set(name, pod);
    this.#happened(before ? 'MODIFIED' : 'ADDED', pod);
  }

  remove(name: string): void {
    const pod = this.#pods.get(name);
    if (!pod) return;
    this.#pods.delete(name);
    this.#happened('DELETED', { ...pod, version: ++this.#version });
  }

  /** Forgets the history, so that older watches end with 410. */
  compact(): void {
    this.#history = [];
    this.#compacted = this.#version;
  }

  bookmark(): void {
    this.send(`{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"${this.#version}"}}}\n`);
  }

  /** Sends the text to every watch. */
  send(text: string): void {
    for (const watcher of this.#watchers) watcher.write(text);
  }

  /** Ends all watches, cleanly or by cutting their connections. */
  end(how: 'cleanly' | 'cut'): void {
    for (const watcher of this.#watchers) {
      if (how === 'cleanly') watcher.end();
      else watcher.socket?.destroy();
    }
    this.#watchers.clear();
  }

  /** Answers the next request of a kind in another way. */
  next(kind: Kind, answer: Answer): void {
    this.#faults.push({ kind, answer });
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => void this.server.close(resolve));
  }

  #happened(type: string, pod: StoredPod): void {
    const line = `${JSON.stringify({ type, object: rawPod(pod) })}\n`;
    this.#history.push({ version: pod.version, line });
    if (!this.muted) this.send(line);
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    const kind = kindOf(request.method ?? '', url);
    this.asked.push({ kind, url });
    const fault = this.#faults.findIndex((candidate) => candidate.kind === kind);
    if (fault >= 0) this.#faults.splice(fault, 1)[0]?.answer(request, response);
    else if (kind === 'list') this.#list(response);
    else if (kind === 'watch') this.#watch(Number(url.searchParams.get('resourceVersion')), response);
  }

  #list(response: ServerResponse): void {
    const items = [...this.#pods.values()].map(rawPod);
    send(response, 200, { kind: 'PodList', metadata: { resourceVersion: this.version }, items });
  }

  #watch(version: number, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    if (version < this.#compacted) {
      response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } })}\n`);
      return;
    }
    for (const happening of this.#history) if (happening.version > version) response.write(happening.line);
    this.#watchers.add(response);
    response.on('close', () => this.#watchers.delete(response));
  }
}

/** The API of a server without authentication. */
export function apiOf(server: string, timeoutMs?: number): KubeApi {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: 'plain', server, skipTLSVerify: true }, { name: 'plain' });
  return new KubeApi(config, 'ns', timeoutMs);
}

function rawPod({ name, uid, version, phase }: StoredPod): object {
  return { kind: 'Pod', metadata: { name, uid, resourceVersion: String(version) }, spec: {}, status: { phase } };
}

function kindOf(method: string, url: URL): Kind {
  if (method === 'POST') return 'create';
  if (method === 'DELETE') return 'delete';
  if (method === 'PATCH') return 'patch';
  if (!url.pathname.endsWith('/pods')) return 'get';
  return url.searchParams.has('watch') ? 'watch' : 'list';
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** A refusal in the format of the API. */
export function refuse(code: number, reason: string, message = 'because', headers: Record<string, string> = {}): Answer {
  return (_request, response) => send(response, code, { kind: 'Status', status: 'Failure', code, reason, message }, headers);
}

/** No answer at all. */
export const cut: Answer = (request) => void request.socket.destroy();
