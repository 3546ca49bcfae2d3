import type { Readable, Writable } from 'node:stream';
import { encodeFrame, FrameReader } from './frames.js';

/** What a supervisor or a nest sends; see docs/sandbox-protocol.md. */
export interface SupervisorFrame {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Frames to and from one process. */
export class FrameChannel {
  private readonly reader = new FrameReader();
  private readonly inbox: SupervisorFrame[] = [];
  private waiting: ((frame: SupervisorFrame | null) => void) | null = null;
  private ended = false;

  /** `onMalformed` is told when the other side speaks nonsense; nothing more is read then. */
  constructor(
    private readonly output: Writable,
    input: Readable,
    onMalformed: (error: Error) => void,
  ) {
    output.on('error', () => undefined);
    input.on('error', () => undefined);
    input.on('data', (chunk: Buffer) => {
      try {
        this.inbox.push(...(this.reader.feed(chunk) as SupervisorFrame[]));
      } catch (error) {
        onMalformed(error as Error);
      }
      this.hand();
    });
  }

  send(frame: SupervisorFrame): void {
    this.output.write(encodeFrame(frame));
  }

  /** The next frame; null once the channel has ended. One reader at a time. */
  receive(): Promise<SupervisorFrame | null> {
    const ready = this.inbox.shift();
    if (ready) return Promise.resolve(ready);
    if (this.ended) return Promise.resolve(null);
    return new Promise((resolve) => (this.waiting = resolve));
  }

  end(): void {
    this.ended = true;
    this.waiting?.(null);
    this.waiting = null;
  }

  private hand(): void {
    const next = this.waiting && this.inbox.shift();
    if (!next) return;
    const resolve = this.waiting;
    this.waiting = null;
    resolve?.(next);
  }
}
