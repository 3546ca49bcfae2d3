import type { ExecutionLog } from './execution-log.js';

/** Logs of finished executions of all sessions, the oldest of which go when they take more than so many bytes. */
export class FinishedLogs {
  readonly #logs = new Map<ExecutionLog, () => void>();
  #bytes = 0;

  constructor(private readonly bytesMax: number) {}

  /** @param forget called when the log has to go; the sandbox can still tell it again */
  keep(log: ExecutionLog, forget: () => void): void {
    this.#logs.set(log, forget);
    this.#bytes += log.bytes;
    for (const [oldest, drop] of this.#logs) {
      if (this.#bytes <= this.bytesMax) return;
      this.#remove(oldest);
      drop();
    }
  }

  /** With its session. */
  drop(log: ExecutionLog): void {
    if (this.#logs.has(log)) this.#remove(log);
  }

  #remove(log: ExecutionLog): void {
    this.#logs.delete(log);
    this.#bytes -= log.bytes;
  }
}
