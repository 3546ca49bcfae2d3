import { EtudeError } from '@etude/contracts/errors';
import { RunResult, type ExecutionRequest } from '@etude/contracts/sandbox';
import type { SupervisorFrame } from './frame-channel.js';
import type { ClaimedSandbox, SandboxDriver, SandboxShape } from './sandbox-driver.js';
import { expectHello, type SandboxLink, type SandboxSource } from './sandbox-link.js';

export interface WarmPool {
  /** Sandboxes kept ready. */
  readonly warm: number;
  /** Shape of the ready ones; others are opened when they are asked for. */
  readonly warmShape: SandboxShape;
}

/** Beyond a run's own wall limit, for the supervisor to stop it and say so; then the sandbox is taken for lost. */
const SUPERVISOR_GRACE_MS = 8_000;

const NEVER = new AbortController().signal;

/** Sandboxes as local processes under bubblewrap, some of them started ahead of the claims. */
export class BubblewrapDriver implements SandboxDriver {
  /** Started ahead, in order; each resolves once it is ready, or with null when it could not be started. */
  private readonly pool: Array<Promise<SandboxLink | null>> = [];
  private readyCount = 0;
  private claims = 0;
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
    this.claimsOpen += 1;
    try {
      const link = (await this.takeReady(shape)) ?? (await this.startFor(shape, signal));
      return new BubblewrapSandbox(link, `claim-${(this.claims += 1)}`, () => this.released(link));
    } catch (error) {
      this.claimsOpen -= 1;
      throw error;
    }
  }

  /** Fills the pool; resolves when all of it is ready. @throws EtudeError SANDBOX_UNAVAILABLE when one can't be started */
  async warmUp(): Promise<void> {
    const starts = Array.from({ length: Math.max(0, this.settings.warm - this.pool.length) }, () =>
      this.startFor(this.settings.warmShape, NEVER),
    );
    this.pool.push(...starts.map((start) => this.announce(start)));
    await Promise.all(starts);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.pool.length = 0;
    this.readyCount = 0;
    await this.source.close();
  }

  /** The oldest of the pool, even if it is just being started: that is sooner than starting another. */
  private async takeReady(shape: SandboxShape): Promise<SandboxLink | null> {
    if (shape.diskMiB !== this.settings.warmShape.diskMiB) return null;
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

  private async startFor(shape: SandboxShape, signal: AbortSignal): Promise<SandboxLink> {
    if (this.closed) throw new EtudeError('SANDBOX_UNAVAILABLE', 'the sandboxes are being shut down');
    const link = this.source.open(shape);
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
  private released(link: SandboxLink): void {
    this.claimsOpen -= 1;
    void link.destroy();
    if (this.closed || (this.claimsOpen > 0 && this.pool.length > 0)) return;
    // What fails here fails again on the next claim, which reports it.
    setImmediate(() => void this.warmUp().catch(() => undefined));
  }
}

class BubblewrapSandbox implements ClaimedSandbox {
  private open = true;

  constructor(
    private readonly link: SandboxLink,
    private readonly claim: string,
    private readonly onRelease: () => void,
  ) {}

  async execute(request: ExecutionRequest, onRun: (result: RunResult) => void, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const stop = () => void this.link.destroy();
    signal.addEventListener('abort', stop, { once: true });
    try {
      this.link.send({ type: 'bind', claim: this.claim });
      this.link.send({ type: 'execute', claim: this.claim, ...request });
      return await this.follow(request, onRun);
    } finally {
      signal.removeEventListener('abort', stop);
      if (signal.aborted) await this.link.gone;
      signal.throwIfAborted();
    }
  }

  async release(): Promise<void> {
    if (this.open) {
      this.open = false;
      this.onRelease();
    }
    await this.link.destroy();
  }

  /** Reads frames until `done`; false when the supervisor was lost or fell silent. */
  private async follow(request: ExecutionRequest, onRun: (result: RunResult) => void): Promise<boolean> {
    for (;;) {
      const watchdog = setTimeout(() => void this.link.destroy(), request.limits.wallMs + SUPERVISOR_GRACE_MS);
      const frame = await this.link.receive().finally(() => clearTimeout(watchdog));
      if (frame === null) return false;
      if (frame.type === 'done') return true;
      if (frame.type === 'refused') throw refused(frame);
      if (frame.type === 'run') onRun(RunResult.parse(frame.result));
    }
  }
}

function refused(frame: SupervisorFrame): EtudeError {
  return new EtudeError('SANDBOX_UNAVAILABLE', `the sandbox refused the execution: ${String(frame.reason)}`);
}
