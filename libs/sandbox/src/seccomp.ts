/** System call numbers of one architecture, from the kernel's tables for x86-64 and generic (arm64). */
interface Architecture {
  readonly audit: number;
  readonly clone: number;
  readonly clone3: number;
  readonly fcntl: number;
  readonly mmap: number;
  readonly prlimit64: number;
  readonly socket: number;
  readonly socketpair: number;
  readonly setpriority: number;
  readonly ioprioSet: number;
  /** sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr. Their first argument is a process. */
  readonly scheduling: readonly number[];
  readonly denied: readonly number[];
}

const X64: Architecture = {
  audit: 0xc000003e,
  clone: 56,
  clone3: 435,
  fcntl: 72,
  mmap: 9,
  prlimit64: 302,
  socket: 41,
  socketpair: 53,
  setpriority: 141,
  ioprioSet: 251,
  scheduling: [142, 144, 203, 314],
  denied: [
    // ptrace, process_vm_readv, process_vm_writev, kcmp, pidfd_getfd
    [101, 310, 311, 312, 438],
    // shared memory, semaphores, message queues: they outlive a run
    [29, 30, 31, 67, 64, 65, 66, 220, 68, 69, 70, 71, 240, 241],
    // keys, bpf, perf_event_open, userfaultfd, io_uring
    [248, 249, 250, 321, 298, 323, 425, 426, 427],
    // io_setup: the whole machine shares its number of asynchronous operations
    [206],
    // mounts, roots, namespaces
    [165, 166, 155, 161, 272, 308, 428, 429, 430, 431, 432, 433, 442],
    // process_madvise, process_mrelease
    [440, 448],
    // inotify, fanotify: /usr is the host's, so a watch of it would show the activity of other processes
    [253, 294, 300, 301],
    // migrate_pages, move_pages of other processes; memfd_secret and vmsplice: memory that no limit counts
    [256, 279, 447, 278],
  ].flat(),
};

const ARM64: Architecture = {
  audit: 0xc00000b7,
  clone: 220,
  clone3: 435,
  fcntl: 25,
  mmap: 222,
  prlimit64: 261,
  socket: 198,
  socketpair: 199,
  setpriority: 140,
  ioprioSet: 30,
  scheduling: [118, 119, 122, 274],
  denied: [
    0, 117, 270, 271, 272, 438, 194, 195, 196, 197, 190, 191, 192, 193, 186, 187, 188, 189, 180, 181, 217, 218, 219, 280, 241, 282, 425,
    426, 427, 40, 39, 41, 51, 97, 268, 428, 429, 430, 431, 432, 433, 442, 440, 448, 26, 262, 263, 238, 239, 447, 75,
  ],
};

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

export interface SeccompOptions {
  /** Whether internet sockets may be opened. Set only if a NetworkPolicy limits the reachable addresses. The machine shares TCP's memory. */
  readonly network: boolean;
}

/**
 * A filter of system calls, as `struct sock_filter[]` for `bwrap --seccomp` and for `ETUDE_SANDBOX_FILTER` of a pod. It refuses calls
 * that reach into other processes, outlive a run, open namespaces, or use up what the machine shares. It refuses all sockets but local
 * ones, and with `network` internet ones. null for an architecture that is not known here.
 */
export function seccompFilter(arch: string, options: SeccompOptions = { network: false }): Buffer | null {
  const machine = { x64: X64, arm64: ARM64 }[arch];
  const families = options.network ? [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] : [AF_UNIX];
  return machine ? assemble(instructions(machine, families)) : null;
}

function instructions(machine: Architecture, families: readonly number[]): Instruction[] {
  const refuse = (number: number, code: number): Instruction[] => [
    [EQUALS, 0, 1, number],
    [RETURN, 0, 0, errno(code)],
  ];
  return [
    [LOAD, 0, 0, 4],
    [EQUALS, 1, 0, machine.audit],
    [RETURN, 0, 0, errno(EPERM)],
    [LOAD, 0, 0, 0],
    // The x32 numbers reach the same calls.
    [AT_LEAST, 0, 1, 0x40000000],
    [RETURN, 0, 0, errno(ENOSYS)],
    // A filter can't see the flags of clone3. On ENOSYS, libraries fall back to clone.
    ...refuse(machine.clone3, ENOSYS),
    ...machine.denied.flatMap((number) => refuse(number, EPERM)),
    ...refuseWhen(machine.clone, 16, [ANY_BIT, CLONE_NAMESPACES], true),
    ...refuseUncountedMemory(machine.mmap),
    // F_NOTIFY is the old way to watch a folder.
    ...refuseWhen(machine.fcntl, 24, [EQUALS, F_NOTIFY], true),
    // All pipes of one host user share a number of pages.
    ...refuseWhen(machine.fcntl, 24, [EQUALS, F_SETPIPE_SZ], true),
    // Process 0 is the caller: it may change its own limits only.
    ...refuseWhen(machine.prlimit64, 16, [EQUALS, 0], false),
    // A process may change its own scheduling only: the supervisor has the same user.
    ...machine.scheduling.flatMap((number) => refuseWhen(number, 16, [EQUALS, 0], false)),
    ...refuseWhen(machine.setpriority, 16, [EQUALS, PRIO_PROCESS], false),
    ...refuseWhen(machine.setpriority, 24, [EQUALS, 0], false),
    ...refuseWhen(machine.ioprioSet, 16, [EQUALS, IOPRIO_WHO_PROCESS], false),
    ...refuseWhen(machine.ioprioSet, 24, [EQUALS, 0], false),
    ...allowFamilies(machine.socket, families),
    // For a family without pairs the kernel would still load its module and make one socket before it fails.
    ...allowFamilies(machine.socketpair, [AF_UNIX]),
    [RETURN, 0, 0, ALLOW],
  ];
}

/**
 * Refuses shared anonymous memory: its pages can stay when no process maps them, and then count for none. Refuses huge pages: the whole
 * machine shares their number.
 */
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

/** Refuses call `number` when its 32-bit argument at `offset` does (`when`) or does not satisfy the test. */
function refuseWhen(number: number, offset: number, [code, value]: readonly [number, number], when: boolean): Instruction[] {
  return [
    [EQUALS, 0, 4, number],
    [LOAD, 0, 0, offset],
    [code, when ? 0 : 1, when ? 1 : 0, value],
    [RETURN, 0, 0, errno(EPERM)],
    [LOAD, 0, 0, 0],
  ];
}

/** Refuses call `socket` for all other families: some, such as AF_VSOCK, reach out of a network namespace. */
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
