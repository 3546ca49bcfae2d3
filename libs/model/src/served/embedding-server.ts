import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { type Asked, type EmbeddingStatus, onFrames, sendFrame } from '@etude/contracts/embedding-socket';
import { errorCode } from '@etude/contracts/errors';
import type { CachedEmbedder } from '../cached-embedder.js';

export interface EmbeddingServerOptions {
  readonly embedder: CachedEmbedder;
  /** Path of the socket. A socket that an earlier process left there is replaced. */
  readonly path: string;
}

/**
 * Serves an embedder to the other processes of a machine on a Unix socket, which only its owner can open. Calls of a client that leaves are
 * given up. The embedder orders the calls: see `sentence-thread.ts`.
 */
export class EmbeddingServer {
  readonly #server: Server;
  #served = 0;
  #queue = 0;

  constructor(private readonly options: EmbeddingServerOptions) {
    this.#server = createServer((socket) => this.#attend(socket));
  }

  async listen(): Promise<void> {
    const { path } = this.options;
    rmSync(path, { force: true });
    // The file has this mode from its first moment.
    const before = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(path, resolve));
    } finally {
      process.umask(before);
    }
  }

  /** Takes no more clients, and removes the socket. Connected clients keep their connection until this process ends. */
  close(): void {
    this.#server.close();
  }

  status(): EmbeddingStatus {
    const { embedder } = this.options;
    const memoryMiB = Math.round(process.memoryUsage.rss() / 2 ** 20);
    return { pid: process.pid, model: embedder.profile.model, memoryMiB, served: this.#served, cached: embedder.found, queue: this.#queue };
  }

  #attend(socket: Socket): void {
    const calls = new Map<number, AbortController>();
    socket.on('error', () => undefined); // `close` follows
    socket.once('close', () => calls.forEach((call) => call.abort()));
    onFrames<Asked>(socket, ({ head }) => {
      if ('cancel' in head) return calls.get(head.cancel)?.abort();
      if ('status' in head) return sendFrame(socket, { id: head.id, status: this.status() });
      const call = new AbortController();
      calls.set(head.id, call);
      void this.#answer(socket, head, call.signal).finally(() => calls.delete(head.id));
    });
  }

  async #answer(
    socket: Socket,
    { id, texts }: { readonly id: number; readonly texts: readonly string[] },
    signal: AbortSignal,
  ): Promise<void> {
    this.#queue += texts.length;
    try {
      const vectors = await this.options.embedder.embed(texts, signal);
      this.#served += texts.length;
      if (!socket.destroyed) sendFrame(socket, { id }, vectors);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (!signal.aborted) sendFrame(socket, { id, error: { code: errorCode(error), message } });
    } finally {
      this.#queue -= texts.length;
    }
  }
}
