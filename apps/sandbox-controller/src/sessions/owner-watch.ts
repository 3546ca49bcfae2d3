import type { ControllerDirectory } from '@etude/queue/sandboxes/controller-directory';

/** A controller must have been seen dead for this long, by the monotonic clock here: one jump of Redis's clock kills nobody. */
const CONFIRM_MS = 2_000;

/** Which controllers are dead for sure: those that said good-bye, and those without a heartbeat at two looks some time apart. */
export class OwnerWatch {
  readonly #suspectSince = new Map<string, number>();

  constructor(
    private readonly directory: ControllerDirectory,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Ids that are dead for sure. */
  async look(): Promise<readonly string[]> {
    const now = this.nowMs();
    const dead = await this.directory.dead();
    const ids = new Set(dead.map(({ controllerId }) => controllerId));
    for (const id of this.#suspectSince.keys()) if (!ids.has(id)) this.#suspectSince.delete(id);
    for (const id of ids) if (!this.#suspectSince.has(id)) this.#suspectSince.set(id, now);
    return dead
      .filter(({ controllerId, left }) => left || now - this.#suspectSince.get(controllerId)! >= CONFIRM_MS)
      .map((one) => one.controllerId);
  }

  /** Also one that nobody remembers. */
  async isDead(controllerId: string): Promise<boolean> {
    if ((await this.look()).includes(controllerId)) return true;
    return !this.#suspectSince.has(controllerId);
  }
}
