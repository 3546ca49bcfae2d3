import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { KubeApi, type WatchEvent } from '@etude/sandbox/kubernetes/kube-api';
import type { Traffic } from './scale-processes.js';

interface Answer {
  readonly kind: 'watch' | 'list' | 'other';
  readonly socket: Socket;
  readonly from: number;
}

interface Finished {
  readonly request: { readonly method: string; readonly path: string };
  readonly response: IncomingMessage;
}

const kindOf = ({ method, path }: Finished['request']): Answer['kind'] =>
  path.includes('watch=true') ? 'watch' : method === 'GET' && path.includes('labelSelector') ? 'list' : 'other';

/** Counts this process's requests to the API server and the answers. Bytes are those of decrypted answers with headers. */
export class TrafficMeter {
  /** Bytes of earlier answers on the same connection. */
  private readonly readBefore = new WeakMap<Socket, number>();
  private readonly answers: Answer[] = [];
  private readonly done = { watch: 0, list: 0, other: 0 };
  readonly events: Record<string, number> = {};
  readonly requests: Record<string, number> = {};

  constructor() {
    channel('http.client.response.finish').subscribe((message) => this.begun(message as Finished));
  }

  count(kind: Record<string, number>, name: string): void {
    kind[name] = (kind[name] ?? 0) + 1;
  }

  read(): Traffic {
    const open = (kind: Answer['kind']) =>
      this.answers.filter((answer) => answer.kind === kind).reduce((sum, { socket, from }) => sum + socket.bytesRead - from, 0);
    const { watch, list } = this.done;
    return {
      watchBytes: watch + open('watch'),
      listBytes: list + open('list'),
      events: { ...this.events },
      requests: { ...this.requests },
    };
  }

  /** The headers of the answer have been read. A part of its body may have come with them. */
  private begun({ request, response }: Finished): void {
    // An answer that has ended no longer has a socket.
    const { socket } = response;
    const answer: Answer = { kind: kindOf(request), socket, from: this.readBefore.get(socket) ?? 0 };
    this.answers.push(answer);
    response.once('close', () => {
      this.answers.splice(this.answers.indexOf(answer), 1);
      this.done[answer.kind] += socket.bytesRead - answer.from;
      this.readBefore.set(socket, socket.bytesRead);
    });
  }
}

const minus = (after: Record<string, number>, before: Record<string, number>) =>
  Object.fromEntries(Object.entries(after).map(([name, value]) => [name, value - (before[name] ?? 0)]));

export const between = (before: Traffic, after: Traffic): Traffic => ({
  watchBytes: after.watchBytes - before.watchBytes,
  listBytes: after.listBytes - before.listBytes,
  events: minus(after.events, before.events),
  requests: minus(after.requests, before.requests),
});

export const total = (counts: Record<string, number>): number => Object.values(counts).reduce((sum, value) => sum + value, 0);

/** The controller's own access to the API server, with every call counted. */
export class MeteredApi extends KubeApi {
  meter: TrafficMeter | null = null;

  private note(verb: string): void {
    if (this.meter) this.meter.count(this.meter.requests, verb);
  }

  override async *watchPods(...args: Parameters<KubeApi['watchPods']>): AsyncIterable<WatchEvent> {
    this.note('watch');
    for await (const event of super.watchPods(...args)) {
      if (this.meter) this.meter.count(this.meter.events, event.type);
      yield event;
    }
  }
  override createPod(...args: Parameters<KubeApi['createPod']>) {
    this.note('create');
    return super.createPod(...args);
  }
  override getPod(...args: Parameters<KubeApi['getPod']>) {
    this.note('get');
    return super.getPod(...args);
  }
  override labelPod(...args: Parameters<KubeApi['labelPod']>) {
    this.note('patch');
    return super.labelPod(...args);
  }
  override deletePod(...args: Parameters<KubeApi['deletePod']>) {
    this.note('delete');
    return super.deletePod(...args);
  }
  override listPods(...args: Parameters<KubeApi['listPods']>) {
    this.note('list');
    return super.listPods(...args);
  }
}
