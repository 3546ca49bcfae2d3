import type { SandboxShape } from './sandbox-driver.js';

/** Descriptors that a sandbox is started with, beside stdin, stdout and stderr. */
export const INFO_FD = 3;
export const BUNDLE_FD = 4;
export const SECCOMP_FD = 5;

const MIB = 1024 * 1024;
const BUNDLE = '/run/etude/bundle';
/** For shared memory and named semaphores of the standard library. */
const SHARED_MEMORY_MIB = 8;

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
}

/** The command that starts one sandbox with the supervisor as process 1. */
export function bubblewrapCommand(options: BubblewrapOptions, shape: SandboxShape): string[] {
  return [
    options.bwrapPath,
    ...namespaces(options.missing),
    '--as-pid-1', '--die-with-parent', '--new-session', '--cap-drop', 'ALL',
    '--clearenv', '--setenv', 'PYTHONHASHSEED', '0',
    '--info-fd', String(INFO_FD),
    ...mounts(options, shape),
    ...(options.missing.has('syscalls') ? [] : ['--seccomp', String(SECCOMP_FD)]),
    '--uid', '1000', '--gid', '1000', '--hostname', 'sandbox', '--chdir', '/',
    ...supervisor(options),
  ];
}

function namespaces(missing: ReadonlySet<OptionalControl>): string[] {
  return [
    '--unshare-all', '--unshare-user',
    ...(missing.has('network') ? ['--share-net'] : []),
    ...(missing.has('nested-namespaces') ? [] : ['--disable-userns']),
  ];
}

function mounts({ sizes }: BubblewrapOptions, { diskMiB }: SandboxShape): string[] {
  const tmpfs = (path: string, mib: number) => [...(sizes ? ['--size', String(mib * MIB)] : []), '--tmpfs', path];
  return [
    '--ro-bind', '/usr', '/usr',
    ...['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    '--proc', '/proc',
    '--dev', '/dev',
    ...tmpfs('/dev/shm', SHARED_MEMORY_MIB),
    '--remount-ro', '/dev',
    ...tmpfs('/tmp', diskMiB),
    '--dir', '/tmp/work',
    '--ro-bind-data', String(BUNDLE_FD), BUNDLE,
    '--remount-ro', '/',
  ];
}

function supervisor({ pythonPath, safePath }: BubblewrapOptions): string[] {
  const python = [pythonPath, '-s', '-S', '-B', ...(safePath ? ['-P'] : []), '-X', 'utf8', '-c'];
  const load = `import marshal;c=marshal.load(open(${JSON.stringify(BUNDLE)},'rb'));n={'__name__':'runner.bundle'};exec(c['runner.bundle'],n);n['install'](${JSON.stringify(BUNDLE)});`;
  const zygote = [...python, `${load}from runner.zygote import main_fresh;main_fresh()`];
  return [...python, `${load}from runner.supervisor import main;main(${JSON.stringify(zygote)})`];
}
