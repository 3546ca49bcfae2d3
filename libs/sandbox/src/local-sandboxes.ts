import { availableParallelism } from 'node:os';
import { SandboxLimits, type ExecutionRequest, type ExecutionResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { SandboxPackages } from '@etude/domain/skills/life/skill-packages';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import { DrivenSandboxes } from './driven-sandboxes.js';
import { provenSource, type ProvenSource } from './control-check.js';
import { type Overlays, readOverlays, requirePromised } from './overlays.js';
import type { SandboxSource } from './sandbox-driver.js';

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
  /** Folder whose folders are packages of templates by their names; see `readOverlays`. Without it there is "default" alone. */
  readonly overlaysPath?: string | undefined;
  /** Packages that skills may declare, by template; folders that hold others are refused. Absent: whatever is there. */
  readonly packages?: SandboxPackages;
  readonly pythonPath?: string;
  readonly bwrapPath?: string;
}

const DEFAULT = 'default';
const NONE: Overlays = new Map();

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
   * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control, and the setting that does without it where there is one;
   *   FAILED_PRECONDITION for packages that can't be used, or are not those of `packages`
   */
  static async start(options: LocalSandboxesOptions = {}): Promise<LocalSandboxes> {
    const warm = options.warm ?? 2;
    const { memoryMiB, diskMiB } = SandboxLimits.parse({});
    const warmShape = { template: DEFAULT, memoryMiB, diskMiB: options.warmDiskMiB ?? diskMiB };
    const overlays = options.overlaysPath === undefined ? NONE : await readOverlays(options.overlaysPath);
    await requirePromised(overlays, options.packages ?? {});
    const proven = await provenSource({
      bwrapPath: options.bwrapPath ?? '/usr/bin/bwrap',
      pythonPath: options.pythonPath ?? '/usr/bin/python3',
      allowMissingControls: options.allowMissingControls ?? [],
      diskMiB: warmShape.diskMiB,
      isolation: options.isolation ?? 'auto',
    });
    const { source, others } = await withOverlays(proven, overlays);
    const driver = new BubblewrapDriver(source, { warm, warmShape, others });
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

/** Sources by template. Where one can't be opened, none is left running. */
async function withOverlays(proven: ProvenSource, overlays: Overlays) {
  const others = new Map<string, SandboxSource>();
  let { source } = proven;
  try {
    for (const [template, path] of overlays) {
      const opened = await proven.withPackages(template, path);
      if (template !== DEFAULT) others.set(template, opened);
      else {
        await source.close();
        source = opened;
      }
    }
  } catch (error) {
    await Promise.all([source, ...others.values()].map((one) => one.close()));
    throw error;
  }
  return { source, others };
}
