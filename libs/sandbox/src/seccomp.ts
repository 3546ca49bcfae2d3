import { readFileSync } from 'node:fs';

interface Architecture {
  /** The architecture's number in `struct seccomp_data`. */
  readonly audit: number;
  /** Numbers of system calls, from the kernel's tables for x86-64 and generic (arm64). null: the architecture lacks the call. */
  readonly calls: Readonly<Record<string, number | null>>;
}

/** Read from `src`, because the compiler copies no JSON. The path is the same from `dist`. */
const CALLS = readFileSync(new URL('../src/seccomp-calls.json', import.meta.url), 'utf8');

/** Calls that are refused with any arguments. */
const DENIED = [
  'ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease',
  // Shared memory, semaphores and message queues outlive a run.
  'shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink',
  'add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register',
  // The whole machine shares one limit of asynchronous operations.
  'io_setup',
  'mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr',
  // /usr belongs to the host, so watching it would show the activity of other processes.
  'inotify_init inotify_init1 fanotify_init fanotify_mark',
  // Pages of other processes, and memory that no limit counts.
  'migrate_pages move_pages memfd_secret vmsplice',
].flatMap((names) => names.split(' '));
/** Calls whose first argument is a process. */
const SCHEDULING = ['sched_setparam', 'sched_setscheduler', 'sched_setaffinity', 'sched_setattr'];

const ALLOW = 0x7fff0000;
const errno = (code: number) => 0x00050000 | code;
const EPERM = 1;
const ENOSYS = 38;
const CLONE_NAMESPACES = 0x7e020000;
const F_NOTIFY = 1026;
const F_SETPIPE_SZ = 1031;
const MAP_SHARED = 0x01;
const MAP_ANONYMOUS = 0x20;
const MAP_HUGETLB = 0x40000;
const PRIO_PROCESS = 0;
const IOPRIO_WHO_PROCESS = 1;

const LOAD = 0x20;
const EQUALS = 0x15;
const ANY_BIT = 0x45;
const AT_LEAST = 0x35;
const RETURN = 0x06;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;

interface SeccompOptions {
  /** Whether internet sockets may be opened. Only for pods whose NetworkPolicy limits the reachable addresses. */
  readonly network: boolean;
}

/**
 * A filter of system calls, as `struct sock_filter[]` for `bwrap --seccomp` and for `ETUDE_SANDBOX_FILTER` of a pod. It refuses calls
 * that reach into other processes, outlive a run, open namespaces, or use up resources that the machine shares. It allows only local
 * sockets, and with `network` internet sockets. null for an unknown architecture.
 */
export function seccompFilter(arch: string, options: SeccompOptions = { network: false }): Buffer | null {
  const machine = (JSON.parse(CALLS) as Readonly<Record<string, Architecture>>)[arch];
  const families = options.network ? [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] : [AF_UNIX];
  return machine ? assemble(instructions(machine, families)) : null;
}

/** @throws Error for an unknown name, because a call that is not found would not be refused */
const numberIn = (calls: Architecture['calls']) => (name: string) => {
  const number = calls[name];
  if (number === undefined) throw new Error(`the table of system calls lacks ${name}`);
  return number;
};

function instructions({ audit, calls }: Architecture, families: readonly number[]): Instruction[] {
  const numbersOf = (names: readonly string[]) => names.map(numberIn(calls)).filter((number) => number !== null);
  const call = (name: string) => numberIn(calls)(name)!;
  const refuse = (number: number, code: number): Instruction[] => [
    [EQUALS, 0, 1, number],
    [RETURN, 0, 0, errno(code)],
  ];
  return [
    [LOAD, 0, 0, 4],
    [EQUALS, 1, 0, audit],
    [RETURN, 0, 0, errno(EPERM)],
    [LOAD, 0, 0, 0],
    // The x32 numbers of the same calls start here. They would bypass the rules below.
    [AT_LEAST, 0, 1, 0x40000000],
    [RETURN, 0, 0, errno(ENOSYS)],
    // A filter can't see the flags of clone3. On ENOSYS, libraries fall back to clone.
    ...refuse(call('clone3'), ENOSYS),
    ...numbersOf(DENIED).flatMap((number) => refuse(number, EPERM)),
    ...refuseWhen(call('clone'), 16, [ANY_BIT, CLONE_NAMESPACES], true),
    ...refuseUncountedMemory(call('mmap')),
    // F_NOTIFY is the old way to watch a folder.
    ...refuseWhen(call('fcntl'), 24, [EQUALS, F_NOTIFY], true),
    // All pipes of one host user share one limit of pages, which larger pipes would use up.
    ...refuseWhen(call('fcntl'), 24, [EQUALS, F_SETPIPE_SZ], true),
    // Process 0 is the caller: it may change its own limits only.
    ...refuseWhen(call('prlimit64'), 16, [EQUALS, 0], false),
    // A process may change its own scheduling only: the supervisor has the same user.
    ...numbersOf(SCHEDULING).flatMap((number) => refuseWhen(number, 16, [EQUALS, 0], false)),
    ...refuseWhen(call('setpriority'), 16, [EQUALS, PRIO_PROCESS], false),
    ...refuseWhen(call('setpriority'), 24, [EQUALS, 0], false),
    ...refuseWhen(call('ioprio_set'), 16, [EQUALS, IOPRIO_WHO_PROCESS], false),
    ...refuseWhen(call('ioprio_set'), 24, [EQUALS, 0], false),
    ...allowFamilies(call('socket'), families),
    // Other families have no socket pairs, but the kernel would load their modules and make a socket before it fails.
    ...allowFamilies(call('socketpair'), [AF_UNIX]),
    [RETURN, 0, 0, ALLOW],
  ];
}

/** Refuses shared anonymous memory, whose pages may stay without counting for any process, and huge pages, which the machine shares. */
function refuseUncountedMemory(mmap: number): Instruction[] {
  return [
    [EQUALS, 0, 6, mmap],
    [LOAD, 0, 0, 40],
    [ANY_BIT, 2, 0, MAP_HUGETLB],
    [ANY_BIT, 0, 2, MAP_ANONYMOUS],
    [ANY_BIT, 0, 1, MAP_SHARED],
    [RETURN, 0, 0, errno(EPERM)],
    [LOAD, 0, 0, 0],
  ];
}

/** Refuses call `number` if the test of its 32-bit argument at `offset` is true (`when` true) or false (`when` false). */
function refuseWhen(number: number, offset: number, [code, value]: readonly [number, number], when: boolean): Instruction[] {
  return [
    [EQUALS, 0, 4, number],
    [LOAD, 0, 0, offset],
    [code, when ? 0 : 1, when ? 1 : 0, value],
    [RETURN, 0, 0, errno(EPERM)],
    [LOAD, 0, 0, 0],
  ];
}

/** Refuses call `socket` for all families but these. Some other families, such as AF_VSOCK, reach out of a network namespace. */
function allowFamilies(socket: number, families: readonly number[]): Instruction[] {
  return [
    [EQUALS, 0, families.length + 3, socket],
    [LOAD, 0, 0, 16],
    ...families.map((family, i): Instruction => [EQUALS, families.length - i, 0, family]),
    [RETURN, 0, 0, errno(EPERM)],
    [LOAD, 0, 0, 0],
  ];
}

function assemble(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, ifTrue, ifFalse, value], i) => {
    bytes.writeUInt16LE(code, i * 8);
    bytes.writeUInt8(ifTrue, i * 8 + 2);
    bytes.writeUInt8(ifFalse, i * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, i * 8 + 4);
  });
  return bytes;
}
