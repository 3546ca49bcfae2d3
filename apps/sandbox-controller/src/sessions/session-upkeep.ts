import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueLogger } from '@etude/queue/redis/redis';
import {
  CONTROLLER_HEARTBEAT_MS,
  type ControllerAnnouncement,
  type ControllerDirectory,
} from '@etude/queue/sandboxes/controller-directory';
import type { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { SessionHost } from './session-host.js';

/** How long a controller must be without a heartbeat, on the monotonic clock. So a jump of Redis's clock has no effect. */
const CONFIRM_MS = 2_000;

export interface SessionUpkeepParts {
  readonly host: SessionHost;
  readonly store: SandboxSessionStore;
  readonly directory: ControllerDirectory;
  /** The announcement of this controller, without its number of sessions. */
  readonly self: Omit<ControllerAnnouncement, 'sessions'>;
  readonly logger: QueueLogger;
}

/** Regular work of a controller: sends its heartbeat, reconciles its sessions with the store, and takes over those of dead controllers. */
export class SessionUpkeep {
  readonly #closing = new AbortController();
  #rounds: Promise<void> = Promise.resolve();
  /** Controllers without a heartbeat, and the time when this controller noticed. */
  #suspects = new Map<string, number>();

  constructor(private readonly parts: SessionUpkeepParts) {}

  /** Resolves when gateways can find the controller. Waits for Redis. */
  async start(): Promise<void> {
    await this.#announce();
    this.#rounds = this.#run();
  }

  /** Withdraws the controller, so that other controllers take its sessions over. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#rounds;
    await this.parts.directory.withdraw(this.parts.self.controllerId);
  }

  /** One round, for tests. */
  async look(): Promise<void> {
    await this.#announce();
    await this.parts.host.reconcile();
    for (const dead of await this.#dead()) await this.#inherit(dead);
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let failing = false;
    while (await sleep(CONTROLLER_HEARTBEAT_MS, true, { signal }).catch(() => false)) {
      try {
        await this.look();
        failing = false;
      } catch (error) {
        if (!failing)
          this.parts.logger.warn({ reason: (error as Error).message }, 'the upkeep of sessions failed; it is retried every second');
        failing = true;
      }
    }
  }

  async #announce(): Promise<void> {
    const { directory, self, host } = this.parts;
    await directory.announce({ ...self, sessions: host.sessionCount });
  }

  /** Ids of dead controllers: they shut down, or had no heartbeat in two rounds CONFIRM_MS apart. */
  async #dead(): Promise<string[]> {
    const now = performance.now();
    const dead = await this.parts.directory.dead();
    this.#suspects = new Map(dead.map(({ controllerId: id }) => [id, this.#suspects.get(id) ?? now]));
    return dead.filter(({ controllerId: id, left }) => left || now - this.#suspects.get(id)! >= CONFIRM_MS).map((one) => one.controllerId);
  }

  /** Takes over the sessions of a dead controller. Unreachable sessions are lost. Other controllers do the same; the first one wins. */
  async #inherit(dead: string): Promise<void> {
    const { store, host, directory } = this.parts;
    for (const { tenant, id } of await store.heldBy(dead)) {
      const stored = await store.get(tenant, id);
      if (stored?.session.state !== 'open' || stored.controllerId !== dead) continue;
      await host.takeOver(stored);
    }
    await directory.forget(dead);
  }
}
