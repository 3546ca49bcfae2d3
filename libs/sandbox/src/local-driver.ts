import { SandboxLimits } from '@etude/contracts/sandbox';
import type { SandboxPackages } from '@etude/domain/skills/life/skill-packages';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import { type Isolation, provenSource } from './control-check.js';
import { readOverlays, requirePromised } from './overlays.js';
import type { SandboxSource } from './sandbox-driver.js';

export interface LocalOptions {
  /** Sandboxes kept ready; default 2. */
  readonly warm?: number;
  /** Disk of a ready sandbox in MiB; default that of SandboxLimits. Claims of another size open a new sandbox. */
  readonly warmDiskMiB?: number;
  /** Controls that this machine need not enforce, by name; see OPTIONAL_CONTROLS. */
  readonly allowMissingControls?: readonly string[];
  /** Default 'auto'. */
  readonly isolation?: Isolation;
  /** Folder with one folder of packages per template, named like the template; see `readOverlays`. Absent: there is only "default". */
  readonly overlaysPath?: string | undefined;
  /** Packages that skills may declare, by template. The start fails where a template's folder lacks one. */
  readonly packages?: SandboxPackages;
  readonly pythonPath?: string;
  readonly bwrapPath?: string;
}

const DEFAULT = 'default';

/**
 * Starts a driver that runs untrusted Python in local processes under bubblewrap, one fresh sandbox per claim.
 * Proves every control by trying it, then fills the pool.
 *
 * Needs Linux, bubblewrap and Python 3.10; as root it runs sandboxes as `nobody`.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control and, where there is one, the setting that lets it be missing;
 *   FAILED_PRECONDITION for packages that can't be used or differ from `packages`
 */
export async function startLocalDriver(options: LocalOptions = {}): Promise<BubblewrapDriver> {
  const { memoryMiB, diskMiB } = SandboxLimits.parse({});
  const warmShape = { template: DEFAULT, memoryMiB, diskMiB: options.warmDiskMiB ?? diskMiB };
  const overlays = options.overlaysPath === undefined ? new Map<string, string>() : await readOverlays(options.overlaysPath);
  await requirePromised(overlays, options.packages ?? {});
  const proven = await provenSource({
    bwrapPath: options.bwrapPath ?? '/usr/bin/bwrap',
    pythonPath: options.pythonPath ?? '/usr/bin/python3',
    allowMissingControls: options.allowMissingControls ?? [],
    diskMiB: warmShape.diskMiB,
    isolation: options.isolation ?? 'auto',
  });
  const sources = new Map<string, SandboxSource>([[DEFAULT, proven.source]]);
  const driver = new BubblewrapDriver(sources, options.warm ?? 2, warmShape);
  try {
    for (const [template, path] of overlays) {
      const opened = await proven.withPackages(template, path);
      await sources.get(template)?.close();
      sources.set(template, opened);
    }
    await driver.warmUp();
    return driver;
  } catch (error) {
    await driver.close();
    throw error;
  }
}
