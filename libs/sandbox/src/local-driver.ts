import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { EtudeError } from '@etude/contracts/errors';
import { SandboxLimits, TemplateName } from '@etude/contracts/sandbox';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import { type Isolation, provenSource } from './control-check.js';
import type { HostUserRange } from './host-users.js';
import type { SandboxSource } from './sandbox-driver.js';

export interface LocalOptions {
  /** Sandboxes kept ready; default 2. */
  readonly warm?: number;
  /** Disk of a ready sandbox in MiB; default as in SandboxLimits. Claims of another size open a new sandbox. */
  readonly warmDiskMiB?: number;
  /** Controls that this machine need not enforce, by name; see OPTIONAL_CONTROLS. */
  readonly allowMissingControls?: readonly string[];
  /** Default 'auto'. */
  readonly isolation?: Isolation;
  /** Folder with one folder of packages per template, named like the template; see `readOverlays`. Absent: only "default" exists. */
  readonly overlaysPath?: string | undefined;
  /** Users of this machine, one for each sandbox; see `HostUsers`. */
  readonly userRange?: HostUserRange | undefined;
  readonly pythonPath?: string;
  readonly bwrapPath?: string;
}

const DEFAULT = 'default';

/**
 * Starts a driver that runs untrusted Python in local processes under bubblewrap, one fresh sandbox per claim.
 * Proves every control by trying it, then fills the pool.
 *
 * Needs Linux, bubblewrap and Python 3.10. Each sandbox runs as a user of its own if there is a range of users;
 * `check` of the driver says if not.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control and the setting, if any, that allows it to be missing;
 *   FAILED_PRECONDITION for packages that can't be used
 */
export async function startLocalDriver(options: LocalOptions = {}): Promise<BubblewrapDriver> {
  const { memoryMiB, diskMiB } = SandboxLimits.parse({});
  const warmShape = { template: DEFAULT, memoryMiB, diskMiB: options.warmDiskMiB ?? diskMiB };
  const overlays = options.overlaysPath === undefined ? [] : await readOverlays(options.overlaysPath);
  const proven = await provenSource({
    bwrapPath: options.bwrapPath ?? '/usr/bin/bwrap',
    pythonPath: options.pythonPath ?? '/usr/bin/python3',
    allowMissingControls: options.allowMissingControls ?? [],
    diskMiB: warmShape.diskMiB,
    isolation: options.isolation ?? 'auto',
    userRange: options.userRange,
  });
  const sources = new Map<string, SandboxSource>([[DEFAULT, proven.source]]);
  const driver = new BubblewrapDriver(sources, options.warm ?? 2, warmShape, proven.users);
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

/**
 * Reads the templates of local sandboxes. Each folder in `path` is a template of that name and holds its packages, as
 * `pip install --target` writes them. Files in `path` are ignored.
 *
 * @returns names, and the paths of their folders
 * @throws EtudeError FAILED_PRECONDITION naming the setting and the path
 */
async function readOverlays(path: string): Promise<ReadonlyArray<readonly [template: string, path: string]>> {
  const refused = (why: string, cause?: unknown) =>
    new EtudeError('FAILED_PRECONDITION', `ETUDE_SANDBOX_OVERLAYS_PATH=${path} ${why}`, {}, { cause });
  const entries = await readdir(path, { withFileTypes: true }).catch((error: Error) => {
    throw refused(`can't be read: ${error.message}`, error);
  });
  const names = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  const wrong = names.find((name) => !TemplateName.safeParse(name).success);
  if (wrong !== undefined)
    throw refused(
      `has the folder ${JSON.stringify(wrong)}. Name each folder like a sandbox template: 1 to 30 lower-case letters, digits and "-".`,
    );
  return names.map((name) => [name, resolve(path, name)]);
}
