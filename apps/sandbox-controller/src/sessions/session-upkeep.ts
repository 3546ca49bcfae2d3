import { errorCode } from '@etude/contracts/errors';
import type { QueueLogger } from '@etude/queue/redis/redis';
import {
  CONTROLLER_HEARTBEAT_MS,
  type ControllerAnnouncement,
  type ControllerDirectory,
} from '@etude/queue/sandboxes/controller-directory';
import type { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { SessionHost } from './session-host.js';

/** How long a controller must look dead, on the monotonic clock, so that a jump of Redis's clock doesn't count. */
const CONFIRM_MS = 2_000;

/** Tells which controllers are certainly dead: they left, or had no heartbeat at two looks CONFIRM_MS apart. */
export class OwnerWatch {
  readonly #suspectSince = new Map<string, number>();

  constructor(
    private readonly directory: ControllerDirectory,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** @returns ids of the controllers that are certainly dead */
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

  /** true also for a controller that the directory doesn't know. */
  async isDead(controllerId: string): Promise<boolean> {
    if ((await this.look()).includes(controllerId)) return true;
    return !this.#suspectSince.has(controllerId);
  }
}

export interface SessionUpkeepParts {
  readonly host: SessionHost;
  readonly store: SandboxSessionStore;
  readonly directory: ControllerDirectory;
  readonly owners: OwnerWatch;
  /** The announcement of this controller, without its number of sessions. */
  readonly self: Omit<ControllerAnnouncement, 'sessions'>;
  readonly logger: QueueLogger;
}

/** A session that is past its expiry by this long is ended by any controller. */
const OVERDUE_MS = 5_000;

/** Regular work of a controller: sends its heartbeat, reconciles its sessions with the store, and takes over those of dead controllers. */
export class SessionUpkeep {
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #closed = false;
  #failing = false;

  constructor(private readonly parts: SessionUpkeepParts) {}

  /** Resolves when gateways can find the controller. Waits for Redis. */
  async start(): Promise<void> {
    await this.#announce();
    this.#next();
  }

  /** Withdraws the controller, so that other ones take its sessions over. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#round;
    await this.parts.directory.withdraw(this.parts.self.controllerId);
  }

  /** One round, for tests. */
  async look(): Promise<void> {
    const { host, owners } = this.parts;
    await this.#announce();
    await host.reconcile();
    for (const dead of await owners.look()) await this.#inherit(dead);
    await this.#endOverdue();
  }

  #next(): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      this.#round = this.#lookOnce().finally(() => this.#next());
    }, CONTROLLER_HEARTBEAT_MS);
  }

  async #lookOnce(): Promise<void> {
    try {
      await this.look();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) this.parts.logger.warn({ reason: (error as Error).message }, 'the upkeep of sessions failed; it is tried again');
      this.#failing = true;
    }
  }

  async #announce(): Promise<void> {
    const { directory, self, host } = this.parts;
    await directory.announce({ ...self, sessions: host.sessionCount });
  }

  /** Takes over the sessions of a dead controller; unreachable ones are lost. Other controllers do the same, and the first one wins. */
  async #inherit(dead: string): Promise<void> {
    const { store, host, directory } = this.parts;
    for (const { tenant, id } of await store.heldBy(dead)) {
      const stored = await store.get(tenant, id);
      if (stored?.session.state !== 'open' || stored.controllerId !== dead) continue;
      await host.takeOver(stored).catch((error: unknown) => {
        // Lost, or another controller was faster: the store says which.
        if (errorCode(error) !== 'FAILED_PRECONDITION' && errorCode(error) !== 'SANDBOX_UNAVAILABLE') throw error;
      });
    }
    await directory.forget(dead);
  }

  async #endOverdue(): Promise<void> {
    const { store } = this.parts;
    for (const { tenant, id } of await store.overdue(OVERDUE_MS)) {
      const stored = await store.get(tenant, id);
      if (stored) await store.end(tenant, id, stored.ownerEpoch, 'expired', '');
    }
  }
}
