import type { ServerResponse } from 'node:http';
import type { McpCaller } from './caller.js';

/**
 * Answers that are still open, by whose they are and the id of their request. Before 2026-07-28 a client cancels with a request of its
 * own, which meets none of what serves the first; it finds it here, where the same process serves both.
 */
export class RunningCalls {
  readonly #open = new Map<string, ServerResponse>();

  /** A request without an id, or of a client without a session, can't be cancelled. */
  add(caller: McpCaller, id: unknown, response: ServerResponse): void {
    const key = keyOf(caller, id);
    if (key === null) return;
    this.#open.set(key, response);
    response.once('close', () => {
      if (this.#open.get(key) === response) this.#open.delete(key);
    });
  }

  /** Closing its answer ends the call behind it. */
  cancel(caller: McpCaller, id: unknown): void {
    const response = this.#open.get(keyOf(caller, id) ?? '');
    if (response?.headersSent) response.end();
    else response?.destroy();
  }

  get size(): number {
    return this.#open.size;
  }
}

function keyOf({ session, metadata, agent, user }: McpCaller, id: unknown): string | null {
  if (session === '' || (typeof id !== 'string' && typeof id !== 'number')) return null;
  return JSON.stringify([metadata['authorization'] ?? '', agent, user, session, id]);
}
