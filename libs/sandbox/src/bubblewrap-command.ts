import type { SandboxShape } from './sandbox-driver.js';

/** File descriptors of bubblewrap after stdin, stdout and stderr. Each command has its own use for FIRST_FREE_FD and above. */
export const INFO_FD = 3;
export const BUNDLE_FD = 4;
export const FIRST_FREE_FD = 5;

const MIB = 1024 * 1024;
const BUNDLE = '/run/etude/bundle';
/** Size of `/dev/shm`, which the standard library needs for shared memory and named semaphores. */
const SHARED_MEMORY_MIB = 8;
/** Folder with the packages of the template, inside a sandbox. Images of pods have the same folder. */
const PACKAGES = '/opt/etude/packages';

/** Controls that an operator may give up, by naming them in `ETUDE_SANDBOX_ALLOW_MISSING`. */
export const OPTIONAL_CONTROLS = ['network', 'nested-namespaces', 'syscalls'] as const;
export type OptionalControl = (typeof OPTIONAL_CONTROLS)[number];

export interface BubblewrapOptions {
  readonly bwrapPath: string;
  readonly pythonPath: string;
  /** Whether Python has the option `-P` (3.11 and later), which keeps the working directory off the import path. */
  readonly safePath: boolean;
  readonly missing: ReadonlySet<OptionalControl>;
  /** Folder on this machine with packages that code may import, mounted read-only. Absent: the standard library only. */
  readonly packagesPath?: string;
}

/** The bwrap command of one sandbox, whose process 1 is the supervisor. bwrap reads the system call filter from FIRST_FREE_FD. */
export function singleCommand(options: BubblewrapOptions, shape: Pick<SandboxShape, 'diskMiB'>): string[] {
  const { missing } = options;
  return [
    ...walls(options),
    ...(missing.has('nested-namespaces') ? [] : ['--disable-userns']),
    ...(missing.has('syscalls') ? [] : ['--seccomp', String(FIRST_FREE_FD)]),
    ...tmpfs('/dev/shm', SHARED_MEMORY_MIB),
    // The whole machine shares its number of terminals, and bwrap sets no limit on a sandbox.
    ...words('--tmpfs /dev/pts --remount-ro /dev/pts --remount-ro /dev'),
    ...tmpfs('/tmp', shape.diskMiB),
    ...bundle(),
    ...python(options, `from runner.supervisor import main;main(${zygote(options)})`),
  ];
}

/**
 * The bwrap command of a nest: one bwrap whose process 1 opens many sandboxes. Each sandbox has the same limits as a sandbox of `singleCommand`.
 *
 * @param usersPipe pipe on which bwrap waits until a user for each sandbox is mapped. null: bwrap itself maps one user for all
 */
export function nestCommand(
  options: BubblewrapOptions & { readonly seccomp: Buffer | null },
  firstPipe: number,
  usersPipe: number | null,
): string[] {
  const { missing, seccomp } = options;
  const filter = missing.has('syscalls') || seccomp === null ? '' : seccomp.toString('hex');
  const ownNetwork = missing.has('network') ? 'False' : 'True';
  return [
    ...walls(options),
    // A nest needs these capabilities to start a sandbox as another user, and to kill it.
    ...(usersPipe === null ? [] : words(`--userns-block-fd ${usersPipe} --cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_KILL`)),
    '--remount-ro',
    '/dev',
    '--dir',
    '/tmp',
    ...(usersPipe === null ? [] : words('--perms 0444')),
    ...bundle(),
    ...python(options, `from runner.nest import main;main(${zygote(options)},${firstPipe},${JSON.stringify(filter)},${ownNetwork})`),
  ];
}

const words = (text: string) => text.split(' ');

/** The first part of both commands: bwrap's namespaces, capabilities and mounts. */
function walls({ bwrapPath, missing, packagesPath }: BubblewrapOptions): string[] {
  return [
    bwrapPath,
    ...words('--unshare-all --unshare-user'),
    ...(missing.has('network') ? ['--share-net'] : []),
    ...words('--as-pid-1 --die-with-parent --new-session --cap-drop ALL --clearenv --setenv PYTHONHASHSEED 0'),
    ...words(`--info-fd ${INFO_FD} --uid 1000 --gid 1000 --hostname sandbox --chdir /`),
    ...words('--ro-bind /usr /usr'),
    ...['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    // Commands such as awk are links into /etc/alternatives.
    // `--dir` creates the folders above a mount. Otherwise bwrap creates them readable to its own user only.
    ...words('--dir /etc --ro-bind-try /etc/alternatives /etc/alternatives'),
    ...(packagesPath === undefined ? [] : [...words('--dir /opt --dir /opt/etude --ro-bind'), packagesPath, PACKAGES]),
    ...words('--proc /proc --dev /dev'),
    // /dev/full reads like /dev/zero. A shared mapping of the real /dev/zero would be memory that no limit counts.
    ...words('--dev-bind /dev/full /dev/zero'),
  ];
}

const tmpfs = (path: string, mib: number) => ['--size', String(mib * MIB), '--tmpfs', path];

/** These must be the last mounts, because they make the root read-only. */
function bundle(): string[] {
  return ['--ro-bind-data', String(BUNDLE_FD), BUNDLE, '--remount-ro', '/'];
}

const LOAD = `import marshal;c=marshal.load(open(${JSON.stringify(BUNDLE)},'rb'));n={'__name__':'runner.bundle'};exec(c['runner.bundle'],n);n['install'](${JSON.stringify(BUNDLE)});`;

/** Puts packages last on the import path, so that none hides a standard module. `listdir` fails for a folder that can't be read. */
const APPEND = `import os,sys;os.listdir(${JSON.stringify(PACKAGES)});sys.path.append(${JSON.stringify(PACKAGES)});`;

function python({ pythonPath, safePath, packagesPath }: BubblewrapOptions, statement: string): string[] {
  const path = packagesPath === undefined ? '' : APPEND;
  return [pythonPath, '-s', '-S', '-B', ...(safePath ? ['-P'] : []), '-X', 'utf8', '-c', LOAD + path + statement];
}

/** The command with which a supervisor starts another interpreter, as a Python list literal. */
function zygote(options: BubblewrapOptions): string {
  return JSON.stringify(python(options, 'from runner.zygote import main_fresh;main_fresh()'));
}
