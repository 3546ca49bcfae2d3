import { setTimeout as pause } from 'node:timers/promises';
import {
  type ClaimedSandbox,
  expectHello,
  noTemplate,
  type SandboxCounts,
  type SandboxDriver,
  type SandboxLink,
  type SandboxShape,
  type SandboxSource,
  unavailable,
} from './sandbox-driver.js';
import type { HostUsers } from './host-users.js';
import { newClaim, SupervisorClient } from './supervisor-client.js';

interface Spare {
  /** Resolves to null when the sandbox could not be started. */
  readonly link: Promise<SandboxLink | null>;
  ready: boolean;
}

/** Pause in ms before a released sandbox is replaced, so that its result reaches the caller first. */
const ANSWER_MS = 7;
const NEVER = new AbortController().signal;

/** Sandboxes as local processes under bubblewrap, some of them started ahead of the claims. */
export class BubblewrapDriver implements SandboxDriver {
  private spares: Spare[] = [];
  private claimsOpen = 0;
  private closed = false;

  /** @param warm number of sandboxes of `warmShape` kept ready; other shapes are opened on demand */
  constructor(
    private readonly sources: ReadonlyMap<string, SandboxSource>,
    private readonly warm: number,
    private readonly warmShape: SandboxShape,
    /** The host users that the sources give to sandboxes, or the reason why all sandboxes share one user. */
    private readonly users?: HostUsers | string,
  ) {}

  counts(): SandboxCounts {
    return { free: this.spares.filter(({ ready }) => ready).length, waiting: 0 };
  }

  check(): string | undefined {
    return typeof this.users === 'string'
      ? `all sandboxes run as one user of this machine, so one of them can use up the kernel's limits for all: ${this.users}`
      : undefined;
  }

  async claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox> {
    signal.throwIfAborted();
    this.claimsOpen += 1;
    try {
      const link = (await this.takeReady(shape)) ?? (await this.start(shape, signal));
      const claim = newClaim();
      // The response is not awaited. Only this process can write to the sandbox's pipe, so no other claim can be first.
      link.send({ type: 'bind', claim });
      return new SupervisorClient(link, { claim, place: null, onRelease: () => this.released(link) });
    } catch (error) {
      this.claimsOpen -= 1;
      throw error;
    }
  }

  attach(): Promise<ClaimedSandbox> {
    return Promise.reject(unavailable('a local sandbox ends with the controller that claimed it'));
  }

  /** Fills the pool; resolves when all of it is ready. @throws EtudeError SANDBOX_UNAVAILABLE if a sandbox can't be started */
  async warmUp(): Promise<void> {
    const starts = Array.from({ length: Math.max(0, this.warm - this.spares.length) }, () => this.start(this.warmShape, NEVER));
    for (const start of starts) this.announce(start);
    await Promise.all(starts);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.spares = [];
    await Promise.all([...this.sources.values()].map((source) => source.close()));
    if (typeof this.users === 'object') this.users.close();
  }

  /** The oldest fitting spare sandbox, or null. A starting spare is awaited, because it is ready sooner than a new sandbox. */
  private async takeReady({ template, diskMiB }: SandboxShape): Promise<SandboxLink | null> {
    if (diskMiB !== this.warmShape.diskMiB || template !== this.warmShape.template) return null;
    for (let spare = this.spares.shift(); spare; spare = this.spares.shift()) {
      const link = await spare.link;
      if (link?.alive) return link;
    }
    return null;
  }

  private announce(start: Promise<SandboxLink>): void {
    const spare: Spare = {
      ready: false,
      link: start.catch(() => {
        // Removed from the pool, so that the next `warmUp` starts another.
        this.spares = this.spares.filter((other) => other !== spare);
        return null;
      }),
    };
    void spare.link.then(() => (spare.ready = true));
    this.spares.push(spare);
  }

  private async start(shape: SandboxShape, signal: AbortSignal): Promise<SandboxLink> {
    const source = this.sources.get(shape.template);
    if (!source) throw noTemplate(shape.template, this.sources);
    if (this.closed) throw unavailable('the sandboxes are being shut down');
    const link = source.open(shape);
    const stop = () => void link.destroy();
    signal.addEventListener('abort', stop, { once: true });
    try {
      await expectHello(link);
      return link;
    } catch (error) {
      await link.destroy();
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Starts replacements if no claim is open or no spare is left. At other times a start would slow down running code. */
  private async released(link: SandboxLink): Promise<void> {
    this.claimsOpen -= 1;
    if (link.alive) await pause(ANSWER_MS);
    // A failure is ignored, because the next claim fails in the same way and reports it.
    if (!this.closed && (this.claimsOpen === 0 || this.spares.length === 0)) void this.warmUp().catch(() => undefined);
    await link.destroy();
  }
}
