import type { IncomingMessage } from 'node:http';
import { kubeError } from './kube-error.js';
import { abortError } from './kube-retry.js';
import { type KubeRequest, connectionError, statusError } from './kube-transport.js';
import { type PodView, type RawPod, podView } from './pod-view.js';

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly pod: PodView }
  /** Nothing changed up to this version. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

/** An object in etcd is at most 1.5 MiB; one line of a watch holds one. */
const LINE_MAX_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * One event per line. Reads only as fast as it is read.
 *
 * @throws EtudeError for a line that is no event, an error that the server sent, a connection that broke in or between lines
 */
export async function* readWatch(
  answer: IncomingMessage,
  request: Pick<KubeRequest, 'method' | 'path'>,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  try {
    for await (const line of lines(answer)) yield watchEvent(line, request);
  } catch (error) {
    throw signal.aborted ? abortError(signal) : connectionError(request, error);
  } finally {
    answer.destroy();
  }
}

async function* lines(answer: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, at)]).toString('utf8');
      parts = [];
      bytes = 0;
      from = at + 1;
      if (line.trim() !== '') yield line;
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes > LINE_MAX_BYTES) throw new Error(`a line of the watch is longer than ${LINE_MAX_BYTES} bytes`);
  }
  if (bytes > 0) throw new Error('the watch ended in the middle of a line');
}

function watchEvent(line: string, request: Pick<KubeRequest, 'method' | 'path'>): WatchEvent {
  const { type, object } = parsed(line, request);
  if (type === 'ERROR') throw statusError(request, object);
  try {
    if (type === 'BOOKMARK') return { type, resourceVersion: versionOf(object) };
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') return { type, pod: podView(object as RawPod) };
  } catch (cause) {
    throw garbled(request, line, cause);
  }
  throw garbled(request, line);
}

function parsed(line: string, request: Pick<KubeRequest, 'method' | 'path'>): { type?: unknown; object?: unknown } {
  try {
    return (JSON.parse(line) ?? {}) as { type?: unknown; object?: unknown };
  } catch (cause) {
    throw garbled(request, line, cause);
  }
}

function versionOf(object: unknown): string {
  const version = (object as RawPod | undefined)?.metadata?.resourceVersion;
  if (!version) throw new TypeError('a bookmark without resourceVersion');
  return version;
}

function garbled(request: Pick<KubeRequest, 'method' | 'path'>, line: string, cause?: unknown): Error {
  return kubeError({ ...request, status: 0, reason: 'Garbled', message: `no event of a watch: ${line.slice(0, 100)}`, cause });
}
