import { availableParallelism } from 'node:os';
import { SandboxLimits, type ExecutionRequest, type ExecutionResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import { DrivenSandboxes } from './driven-sandboxes.js';
import { provenSource } from './control-check.js';

export interface LocalSandboxesOptions {
  /** Sandboxes kept ready; default 2. */
  readonly warm?: number;
  /** Sandboxes that run at once; default two per core, at most 32. */
  readonly concurrencyMax?: number;
  /** Executions that may wait for their turn; default 1,000. */
  readonly waitingMax?: number;
  /** Disk of a ready sandbox in MiB; executions that ask for another size start one of their own. */
  readonly warmDiskMiB?: number;
  /** Controls that this machine need not enforce, by name; see OPTIONAL_CONTROLS. */
  readonly allowMissingControls?: readonly string[];
  /** 'nest' opens sandboxes from a warm interpreter, 'single' starts one for each; default 'auto', the former where it works. */
  readonly isolation?: 'auto' | 'nest' | 'single';
  readonly pythonPath?: string;
  readonly bwrapPath?: string;
}

/**
 * Untrusted Python in local processes under bubblewrap, one fresh sandbox per execution.
 *
 * Needs Linux, bubblewrap and Python 3.10; as root it runs sandboxes as `nobody`.
 */
export class LocalSandboxes implements Sandboxes {
  private constructor(
    /** For sessions, which hold a sandbox longer than an execution does. */
    readonly driver: BubblewrapDriver,
    private readonly driven: DrivenSandboxes,
  ) {}

  /**
   * Proves every control by trying it, then fills the pool.
   *
   * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control, and the setting that does without it where there is one
   */
  static async start(options: LocalSandboxesOptions = {}): Promise<LocalSandboxes> {
    const warm = options.warm ?? 2;
    const { memoryMiB, diskMiB } = SandboxLimits.parse({});
    const warmShape = { template: 'default', memoryMiB, diskMiB: options.warmDiskMiB ?? diskMiB };
    const source = await provenSource({
      bwrapPath: options.bwrapPath ?? '/usr/bin/bwrap',
      pythonPath: options.pythonPath ?? '/usr/bin/python3',
      allowMissingControls: options.allowMissingControls ?? [],
      diskMiB: warmShape.diskMiB,
      isolation: options.isolation ?? 'auto',
    });
    const driver = new BubblewrapDriver(source, { warm, warmShape });
    await driver.warmUp();
    const concurrencyMax = options.concurrencyMax ?? Math.min(32, 2 * availableParallelism());
    return new LocalSandboxes(driver, new DrivenSandboxes(driver, { concurrencyMax, waitingMax: options.waitingMax ?? 1_000 }));
  }

  execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    return this.driven.execute(request, signal);
  }

  /** Sandboxes that are ready at this moment. */
  get warmCount(): number {
    return this.driver.warmCount;
  }

  /** Stops whatever runs and destroys every sandbox. */
  async close(): Promise<void> {
    this.driven.close();
    await this.driver.close();
  }
}
