import { setTimeout as pause } from 'node:timers/promises';
import { EtudeError } from '@etude/contracts/errors';
import {
  type ClaimedSandbox,
  expectHello,
  type SandboxDriver,
  type SandboxLink,
  type SandboxShape,
  type SandboxSource,
  unavailable,
} from './sandbox-driver.js';
import { newClaim, SupervisorClient } from './supervisor-client.js';

export interface WarmPool {
  /** Sandboxes kept ready. */
  readonly warm: number;
  /** Shape of the ready ones; others are opened when they are asked for. */
  readonly warmShape: SandboxShape;
  /** Of templates other than that of the ready ones. */
  readonly others?: ReadonlyMap<string, SandboxSource>;
}

/** A result has about so far to go until who waits has it; ending its sandbox and opening another one would hold it up. */
const ANSWER_MS = 7;
const NEVER = new AbortController().signal;

/** Sandboxes as local processes under bubblewrap, some of them started ahead of the claims. */
export class BubblewrapDriver implements SandboxDriver {
  /** Started ahead, in order; each resolves once it is ready, or with null when it could not be started. */
  private readonly pool: Array<Promise<SandboxLink | null>> = [];
  private readyCount = 0;
  private claimsOpen = 0;
  private closed = false;

  constructor(
    private readonly source: SandboxSource,
    private readonly settings: WarmPool,
  ) {}

  /** Ready sandboxes at this moment. */
  get warmCount(): number {
    return this.readyCount;
  }

  async claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox> {
    signal.throwIfAborted();
    const source = this.sourceOf(shape);
    this.claimsOpen += 1;
    try {
      const link = (await this.takeReady(shape)) ?? (await this.startFor(shape, source, signal));
      const claim = newClaim();
      // Not waited for: nobody else can reach a sandbox that hangs on a pipe.
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

  /** Fills the pool; resolves when all of it is ready. @throws EtudeError SANDBOX_UNAVAILABLE when one can't be started */
  async warmUp(): Promise<void> {
    const starts = Array.from({ length: Math.max(0, this.settings.warm - this.pool.length) }, () =>
      this.startFor(this.settings.warmShape, this.source, NEVER),
    );
    this.pool.push(...starts.map((start) => this.announce(start)));
    await Promise.all(starts);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.pool.length = 0;
    this.readyCount = 0;
    await Promise.all([this.source, ...(this.settings.others?.values() ?? [])].map((source) => source.close()));
  }

  private sourceOf({ template }: SandboxShape): SandboxSource {
    const { warmShape, others = new Map<string, SandboxSource>() } = this.settings;
    const source = template === warmShape.template ? this.source : others.get(template);
    if (source !== undefined) return source;
    const known = [warmShape.template, ...others.keys()].map((name) => JSON.stringify(name));
    const there = known.length === 1 ? `there is ${known[0]} alone` : `there are ${known.join(', ')}`;
    throw new EtudeError('INVALID_ARGUMENT', `there is no sandbox template "${template}" here; ${there}`, { field: 'template' });
  }

  /** The oldest of the pool, even if it is just being started: that is sooner than starting another. */
  private async takeReady(shape: SandboxShape): Promise<SandboxLink | null> {
    const { template, diskMiB } = this.settings.warmShape;
    if (shape.diskMiB !== diskMiB || shape.template !== template) return null;
    for (let start = this.pool.shift(); start; start = this.pool.shift()) {
      const link = await start;
      if (link) this.readyCount = Math.max(0, this.readyCount - 1);
      if (link?.alive) return link;
    }
    return null;
  }

  private announce(start: Promise<SandboxLink>): Promise<SandboxLink | null> {
    const entry: Promise<SandboxLink | null> = start.then(
      (link) => {
        this.readyCount += 1;
        return link;
      },
      () => {
        // Out of the pool, so that the next round tries again.
        const at = this.pool.indexOf(entry);
        if (at >= 0) void this.pool.splice(at, 1);
        return null;
      },
    );
    return entry;
  }

  private async startFor(shape: SandboxShape, source: SandboxSource, signal: AbortSignal): Promise<SandboxLink> {
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

  /** Replacements start when nothing runs or nothing is left, so that starting one never slows a running one. */
  private async released(link: SandboxLink): Promise<void> {
    this.claimsOpen -= 1;
    if (link.alive) await pause(ANSWER_MS);
    // What fails here fails again on the next claim, which reports it.
    if (!this.closed && (this.claimsOpen === 0 || this.pool.length === 0)) void this.warmUp().catch(() => undefined);
    await link.destroy();
  }
}
