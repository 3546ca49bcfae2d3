import type { Scope } from '@etude/contracts/memory';

/** Lets the writes of one owner pass one after the other; those of others at the same time. Of this process alone. */
export class OwnerTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>({ tenant, agent, user }: Scope, work: () => Promise<T>): Promise<T> {
    const owner = JSON.stringify([tenant, agent, user]);
    const before = this.#last.get(owner) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#last.set(owner, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(owner) === turn) this.#last.delete(owner);
    }
  }
}
