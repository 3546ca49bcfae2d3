import { BUNDLE_FD, FIRST_FREE_FD, INFO_FD } from './bubblewrap-process.js';
import type { SandboxShape } from './sandbox-driver.js';

const MIB = 1024 * 1024;
const BUNDLE = '/run/etude/bundle';
/** For shared memory and named semaphores of the standard library. */
const SHARED_MEMORY_MIB = 8;
/** Where pods have their image's, too. */
const PACKAGES = '/opt/etude/packages';

/** Controls that an operator may do without, each by name in `ETUDE_SANDBOX_ALLOW_MISSING`. */
export const OPTIONAL_CONTROLS = ['network', 'nested-namespaces', 'syscalls', 'disk'] as const;
export type OptionalControl = (typeof OPTIONAL_CONTROLS)[number];

export interface BubblewrapOptions {
  readonly bwrapPath: string;
  readonly pythonPath: string;
  /** Python knows `-P`: the working directory is no place to import from. */
  readonly safePath: boolean;
  /** bwrap of 0.7 and later sets the size of a tmpfs. */
  readonly sizes: boolean;
  readonly missing: ReadonlySet<OptionalControl>;
  /** Folder of this machine with what code may import beyond the standard library; it can't write there. */
  readonly packagesPath?: string;
}

/** One sandbox with the supervisor as process 1. The filter is read from FIRST_FREE_FD. */
export function singleCommand(options: BubblewrapOptions, shape: Pick<SandboxShape, 'diskMiB'>): string[] {
  const { missing } = options;
  return [
    ...walls(options),
    ...(missing.has('nested-namespaces') ? [] : ['--disable-userns']),
    ...(missing.has('syscalls') ? [] : ['--seccomp', String(FIRST_FREE_FD)]),
    ...tmpfs(options, '/dev/shm', SHARED_MEMORY_MIB),
    '--remount-ro',
    '/dev',
    ...tmpfs(options, '/tmp', shape.diskMiB),
    ...bundle(),
    ...python(options, `from runner.supervisor import main;main(${zygote(options)})`),
  ];
}

/** A nest as process 1, which opens the sandboxes: each with the same limits as a single one, inside these walls. */
export function nestCommand(options: BubblewrapOptions & { readonly seccomp: Buffer | null }, firstPipe: number): string[] {
  const { missing, seccomp } = options;
  const filter = missing.has('syscalls') || seccomp === null ? '' : seccomp.toString('hex');
  const ownNetwork = missing.has('network') ? 'False' : 'True';
  return [
    ...walls(options),
    '--remount-ro',
    '/dev',
    '--dir',
    '/tmp',
    ...bundle(),
    ...python(options, `from runner.nest import main;main(${zygote(options)},${firstPipe},${JSON.stringify(filter)},${ownNetwork})`),
  ];
}

const words = (text: string) => text.split(' ');

/** What both have in common. */
function walls({ bwrapPath, missing, packagesPath }: BubblewrapOptions): string[] {
  return [
    bwrapPath,
    ...words('--unshare-all --unshare-user'),
    ...(missing.has('network') ? ['--share-net'] : []),
    ...words('--as-pid-1 --die-with-parent --new-session --cap-drop ALL --clearenv --setenv PYTHONHASHSEED 0'),
    ...words(`--info-fd ${INFO_FD} --uid 1000 --gid 1000 --hostname sandbox --chdir /`),
    ...words('--ro-bind /usr /usr'),
    ...['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    // Where commands such as awk lead to.
    ...words('--ro-bind-try /etc/alternatives /etc/alternatives'),
    ...(packagesPath === undefined ? [] : ['--ro-bind', packagesPath, PACKAGES]),
    ...words('--proc /proc --dev /dev'),
    // It reads alike. Mapped by several, /dev/zero is memory that no limit counts.
    ...words('--dev-bind /dev/full /dev/zero'),
  ];
}

function tmpfs({ sizes }: BubblewrapOptions, path: string, mib: number): string[] {
  return [...(sizes ? ['--size', String(mib * MIB)] : []), '--tmpfs', path];
}

/** The last mounts: behind them the root is closed. */
function bundle(): string[] {
  return ['--ro-bind-data', String(BUNDLE_FD), BUNDLE, '--remount-ro', '/'];
}

const LOAD = `import marshal;c=marshal.load(open(${JSON.stringify(BUNDLE)},'rb'));n={'__name__':'runner.bundle'};exec(c['runner.bundle'],n);n['install'](${JSON.stringify(BUNDLE)});`;

/** Behind the standard library, of which a package hides nothing. Listed first: a folder that can't be read would look like an empty one. */
const APPEND = `import os,sys;os.listdir(${JSON.stringify(PACKAGES)});sys.path.append(${JSON.stringify(PACKAGES)});`;

function python({ pythonPath, safePath, packagesPath }: BubblewrapOptions, statement: string): string[] {
  const path = packagesPath === undefined ? '' : APPEND;
  return [pythonPath, '-s', '-S', '-B', ...(safePath ? ['-P'] : []), '-X', 'utf8', '-c', LOAD + path + statement];
}

/** How a supervisor starts an interpreter anew, as Python source. */
function zygote(options: BubblewrapOptions): string {
  return JSON.stringify(python(options, 'from runner.zygote import main_fresh;main_fresh()'));
}
