import type { Readable, Writable } from 'node:stream';

/** Longest frame that is read; the supervisor has the same limit. */
const FRAME_BYTES_MAX = 256 * 1024 * 1024;

/** A frame is four bytes of length, big endian, then one JSON document in UTF-8. */
export function encodeFrame(document: unknown): Buffer {
  const body = Buffer.from(JSON.stringify(document));
  const frame = Buffer.allocUnsafe(4 + body.length);
  frame.writeUInt32BE(body.length, 0);
  body.copy(frame, 4);
  return frame;
}

export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  /** @returns the documents that `chunk` completes. @throws Error on a frame that is too long or not JSON */
  feed(chunk: Buffer): unknown[] {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const documents: unknown[] = [];
    for (let body = this.next(); body !== null; body = this.next()) documents.push(JSON.parse(body.toString('utf8')));
    return documents;
  }

  private next(): Buffer | null {
    if (this.size < 4) return null;
    const length = this.join(4).readUInt32BE(0);
    if (length > FRAME_BYTES_MAX) throw new Error(`a frame of ${length} bytes is over the limit of ${FRAME_BYTES_MAX}`);
    if (this.size < 4 + length) return null;
    const all = this.join(4 + length);
    const rest = all.subarray(4 + length);
    this.chunks = rest.length > 0 ? [rest, ...this.chunks.slice(1)] : this.chunks.slice(1);
    this.size -= 4 + length;
    return all.subarray(4, 4 + length);
  }

  /** The first chunk, after making it at least `bytes` long. */
  private join(bytes: number): Buffer {
    if ((this.chunks[0]?.length ?? 0) < bytes) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0] as Buffer;
  }
}

/** A message to or from a supervisor or a nest; see docs/sandbox-protocol.md. */
export interface SupervisorFrame {
  readonly type: string;
  readonly [field: string]: unknown;
}

export class FrameChannel {
  private readonly reader = new FrameReader();
  private readonly inbox: SupervisorFrame[] = [];
  private grown = Promise.withResolvers<void>();
  private ended = false;

  /** @param onMalformed called for an unreadable frame, after which the channel ends. The callback must end the other side, too */
  constructor(
    private readonly output: Writable,
    input: Readable,
    onMalformed: (error: Error) => void,
  ) {
    output.on('error', () => undefined);
    input.on('error', () => undefined);
    input.on('data', (chunk: Buffer) => {
      if (this.ended) return;
      try {
        this.inbox.push(...(this.reader.feed(chunk) as SupervisorFrame[]));
      } catch (error) {
        onMalformed(error as Error);
        this.ended = true;
      }
      this.wake();
    });
  }

  send(frame: SupervisorFrame): void {
    this.output.write(encodeFrame(frame));
  }

  /** The next frame; null once the channel has ended. One reader at a time. */
  async receive(): Promise<SupervisorFrame | null> {
    while (this.inbox.length === 0 && !this.ended) await this.grown.promise;
    return this.inbox.shift() ?? null;
  }

  end(): void {
    this.ended = true;
    this.wake();
  }

  private wake(): void {
    this.grown.resolve();
    this.grown = Promise.withResolvers();
  }
}

/** The common part of links to supervisors: sends and receives frames until `end` is called. */
export abstract class ChannelLink {
  readonly #ending = Promise.withResolvers<void>();
  readonly gone = this.#ending.promise;
  protected abstract readonly channel: FrameChannel;
  protected over = false;

  get alive(): boolean {
    return !this.over;
  }

  send(frame: SupervisorFrame): void {
    this.channel.send(frame);
  }

  receive(): Promise<SupervisorFrame | null> {
    return this.channel.receive();
  }

  protected end(): void {
    this.over = true;
    this.channel.end();
    this.#ending.resolve();
  }
}
