import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { arch } from 'node:process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { SandboxLimits, TemplateName } from '@etude/contracts/sandbox';
import { OPTIONAL_CONTROLS, type OptionalControl } from './bubblewrap-command.js';
import { BubblewrapDriver } from './bubblewrap-driver.js';
import { NestSource, SingleSource, type SourceSettings } from './bubblewrap-sources.js';
import { type HostUserRange, HostUsers } from './host-users.js';
import { controlMissing, probe } from './probe.js';
import { expectHello, type SandboxShape, type SandboxSource } from './sandbox-driver.js';
import { seccompFilter } from './seccomp.js';

export interface LocalOptions {
  /** Sandboxes kept ready; default 2. */
  readonly warm?: number;
  /** Disk of a ready sandbox in MiB; default as in SandboxLimits. Claims of another size open a new sandbox. */
  readonly warmDiskMiB?: number;
  /** Controls that this machine need not enforce, by name; see OPTIONAL_CONTROLS. */
  readonly allowMissingControls?: readonly string[];
  /** Default 'auto'. */
  readonly isolation?: Isolation;
  /** Folder with one subfolder of packages per template; see `readOverlays`. Absent: only the template "default" exists. */
  readonly overlaysPath?: string | undefined;
  /** Users of this machine, one for each sandbox; see `HostUsers`. */
  readonly userRange?: HostUserRange | undefined;
  readonly pythonPath?: string;
  readonly bwrapPath?: string;
}

const DEFAULT = 'default';

/**
 * Starts a driver that runs untrusted Python in local processes under bubblewrap, one fresh sandbox per claim.
 * Tries every control inside a sandbox to prove that it works, then fills the pool.
 *
 * Needs Linux, bubblewrap and Python 3.10. Each sandbox runs as a user of its own if there is a range of users.
 * Otherwise the driver's `check` says why not.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control and the setting, if any, that allows it to be missing;
 *   FAILED_PRECONDITION for packages that can't be used
 */
export async function startLocalDriver(options: LocalOptions = {}): Promise<BubblewrapDriver> {
  const { memoryMiB, diskMiB } = SandboxLimits.parse({});
  const shape = { template: DEFAULT, memoryMiB, diskMiB: options.warmDiskMiB ?? diskMiB };
  const overlays = options.overlaysPath === undefined ? [] : await readOverlays(options.overlaysPath);
  const proven = await provenSource(options, shape);
  const sources = new Map<string, SandboxSource>([[DEFAULT, proven.source]]);
  const driver = new BubblewrapDriver(sources, options.warm ?? 2, shape, proven.users);
  try {
    for (const [template, packagesPath] of overlays) {
      const source = proven.withPackages(packagesPath);
      await sources.get(template)?.close();
      sources.set(template, source);
      await tryPackages(source, { ...shape, template }, packagesPath);
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

/** `nest` forks sandboxes from a warm interpreter; `single` starts an interpreter for each sandbox. `auto` takes `nest` if the machine allows it. */
export type Isolation = 'auto' | 'nest' | 'single';

const NOBODY = { uid: 65_534, gid: 65_534 };

/** Messages of bubblewrap, each with the control that could not be set up. */
const START_FAILURES: ReadonlyArray<readonly [RegExp, OptionalControl]> = [
  [/loopback|RTM_NEWADDR/i, 'network'],
  [/disable-userns|max_user_namespaces/i, 'nested-namespaces'],
  [/seccomp/i, 'syscalls'],
];

/** The control with this name, if the operator allows it to be missing. @throws EtudeError SANDBOX_CONTROL_MISSING if not */
function acceptMissing(name: string, why: string, allowed: readonly string[] = []): OptionalControl {
  const control = OPTIONAL_CONTROLS.find((known) => known === name);
  if (!control || !allowed.includes(control)) throw controlMissing(name, 'here', why, control !== undefined);
  return control;
}

/** Finds a way to start sandboxes that enforces every control that must not be missing. @throws EtudeError SANDBOX_CONTROL_MISSING */
async function provenSource(options: LocalOptions, shape: SandboxShape) {
  const { bwrapPath = '/usr/bin/bwrap', pythonPath = '/usr/bin/python3', isolation = 'auto', allowMissingControls: allowed } = options;
  const [interpreter, canBeSingle] = await Promise.all([buildBundle(pythonPath), isRecentBubblewrap(bwrapPath)]);
  const seccomp = seccompFilter(arch);
  const user = process.getuid?.() === 0 ? NOBODY : undefined;
  const prove = async (kind: 'single' | 'nest') => {
    const missing = new Set<OptionalControl>();
    if (!seccomp) missing.add(acceptMissing('syscalls', `there is no system call filter for ${arch}`, allowed));
    const users = await HostUsers.take(options.userRange, kind === 'nest');
    const settings = { bwrapPath, pythonPath, ...interpreter, seccomp, user, missing, allowed };
    return proveAll(settings, kind === 'single' ? SingleSource : NestSource, users, shape).catch((error: unknown) => {
      if (typeof users !== 'string') users.close();
      throw error;
    });
  };
  if (isolation !== 'auto') return prove(isolation);
  return canBeSingle ? prove('nest').catch(() => prove('single')) : prove('nest');
}

/** Tries all controls. After an acceptable failure it tries again without that control, or with one user for all sandboxes. */
async function proveAll(
  base: Omit<SourceSettings, 'users'> & { readonly missing: Set<OptionalControl>; readonly allowed: readonly string[] | undefined },
  Source: typeof SingleSource | typeof NestSource,
  given: HostUsers | string,
  shape: SandboxShape,
) {
  for (let users = given; ;) {
    const settings = { ...base, users: typeof users === 'string' ? null : users };
    const source = new Source(settings);
    try {
      for (const [control, why] of Object.entries(await tryProbe(source, shape.diskMiB)))
        base.missing.add(acceptMissing(control, why, base.allowed));
      return { source, users, withPackages: (packagesPath: string): SandboxSource => new Source({ ...settings, packagesPath }) };
    } catch (error) {
      await source.close();
      if (errorCode(error) === 'SANDBOX_CONTROL_MISSING') throw error;
      const { message } = error as Error;
      const failed = START_FAILURES.find(([pattern, control]) => pattern.test(message) && !base.missing.has(control));
      if (failed) base.missing.add(acceptMissing(failed[1], message, base.allowed));
      else if (settings.users === null) throw startFailure(error as Error);
      else {
        settings.users.close();
        users = message;
      }
    }
  }
}

/** Opens one sandbox. @throws EtudeError FAILED_PRECONDITION naming the template and the problem of its folder */
async function tryPackages(source: SandboxSource, shape: SandboxShape, packagesPath: string): Promise<void> {
  const link = source.open(shape);
  try {
    await expectHello(link);
    await link.destroy();
  } catch (cause) {
    // The last line of Python's output names the error.
    const why = (cause as Error).message.trimEnd().split('\n').at(-1);
    const advice = `Its packages in ${packagesPath}, and the folders above, must be readable to every user.`;
    throw new EtudeError('FAILED_PRECONDITION', `the sandbox template "${shape.template}" can't be used: ${why}. ${advice}`, {}, { cause });
  }
}

/** @returns the controls that are not enforced, each with what was found */
async function tryProbe(source: SandboxSource, diskMiB: number): Promise<Record<string, string>> {
  const limits = { ...SandboxLimits.parse({}), diskMiB, processes: 8, memoryMiB: 128 };
  const shape = { template: 'default', memoryMiB: limits.memoryMiB, diskMiB };
  const signal = AbortSignal.timeout(20_000);
  const sandbox = await new BubblewrapDriver(new Map([[shape.template, source]]), 0, shape).claim(shape, signal);
  const found = await probe(sandbox, limits, signal);
  await sandbox.release();
  return found;
}

function startFailure(error: Error): Error {
  if (!/namespace|uid map|permission|not permitted/i.test(error.message)) return error;
  const ways =
    'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0';
  return controlMissing('namespaces', 'here', `${error.message}. User namespaces must be allowed: ${ways}`, false);
}

const run = promisify(execFile);
const RUNNER = fileURLToPath(new URL('../runner/', import.meta.url));
const INSTALL = 'apt-get install -y bubblewrap python3';

/** Compiles the runner with the sandbox's own Python. @throws EtudeError SANDBOX_CONTROL_MISSING with the command that installs Python */
async function buildBundle(pythonPath: string): Promise<Pick<SourceSettings, 'bundle' | 'safePath'>> {
  const script = `import sys;v=sys.version_info;sys.stdout.write("%d.%d\\n" % v[:2]);sys.stdout.flush();sys.path.insert(0,${JSON.stringify(RUNNER)});import bundle;sys.stdout.buffer.write(bundle.build(${JSON.stringify(RUNNER)}))`;
  const { stdout } = await run(pythonPath, ['-I', '-S', '-B', '-c', script], { encoding: 'buffer', maxBuffer: 16 * 1024 * 1024 }).catch(
    (error: Error) => {
      throw unusable(`Python at ${pythonPath} does not work: ${error.message}`);
    },
  );
  const newline = stdout.indexOf('\n');
  const [major = 0, minor = 0] = stdout.subarray(0, newline).toString().split('.').map(Number);
  if (major < 3 || minor < 10) throw unusable(`Python at ${pythonPath} is ${major}.${minor}, but 3.10 or newer is needed`);
  return { bundle: Buffer.from(stdout.subarray(newline + 1)), safePath: minor >= 11 };
}

/** Whether bubblewrap is 0.8 or later, which `single` needs. @throws EtudeError SANDBOX_CONTROL_MISSING with the command that installs it */
async function isRecentBubblewrap(bwrapPath: string): Promise<boolean> {
  const { stdout } = await run(bwrapPath, ['--version']).catch((error: Error) => {
    throw unusable(`bubblewrap at ${bwrapPath} does not work: ${error.message}`);
  });
  const [, major, minor] = /(\d+)\.(\d+)/.exec(stdout) ?? [];
  return Number(major) > 0 || Number(minor) >= 8;
}

function unusable(what: string): EtudeError {
  return new EtudeError('SANDBOX_CONTROL_MISSING', `${what.trim()}. Run: ${INSTALL}`, { metadata: { install: INSTALL } });
}
