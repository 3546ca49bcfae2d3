import { describe, expect, it } from 'vitest';
import { seccompFilter } from './seccomp.js';

const ALLOWED = 0x7fff0000;
const EPERM = 0x00050001;
const ENOSYS = 0x00050026;
const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
type Arch = keyof typeof AUDIT;

/** The kernel's answer to a system call, computed by interpreting the filter. */
function answer(filter: Buffer, audit: number, number: number, args: readonly number[] = []): number {
  const words = new Map([[0, number] as const, [4, audit] as const, ...args.map((value, i) => [16 + 8 * i, value >>> 0] as const)]);
  let loaded = 0;
  for (let at = 0; at < filter.length; at += 8) {
    const code = filter.readUInt16LE(at);
    const value = filter.readUInt32LE(at + 4);
    if (code === 0x06) return value;
    if (code === 0x20) loaded = words.get(value) ?? 0;
    else at += 8 * filter.readUInt8(at + (holds(code, loaded, value) ? 2 : 3));
  }
  throw new Error('the program has no end');
}

function holds(code: number, loaded: number, value: number): boolean {
  if (code === 0x15) return loaded === value;
  if (code === 0x35) return loaded >= value;
  if (code === 0x45) return (loaded & value) !== 0;
  throw new Error(`unknown instruction ${code}`);
}

/** Numbers of system calls. */
const CALLS = {
  read: { x64: 0, arm64: 63 },
  mmap: { x64: 9, arm64: 222 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
  vmsplice: { x64: 278, arm64: 75 },
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  io_setup: { x64: 206, arm64: 0 },
  fcntl: { x64: 72, arm64: 25 },
  ptrace: { x64: 101, arm64: 117 },
  prlimit64: { x64: 302, arm64: 261 },
  setpriority: { x64: 141, arm64: 140 },
  sched_setaffinity: { x64: 203, arm64: 122 },
  ioprio_set: { x64: 251, arm64: 30 },
} as const;

describe.each(['x64', 'arm64'] as const)('the system call filter of %s', (arch: Arch) => {
  const closed = seccompFilter(arch, { network: false });
  const open = seccompFilter(arch, { network: true });
  if (!closed || !open) throw new Error('there is no filter');
  const call = (name: keyof typeof CALLS, ...args: number[]) => answer(closed, AUDIT[arch], CALLS[name][arch], args);

  it('allows the calls that programs need', () => {
    expect(call('read', 0)).toBe(ALLOWED);
    expect(call('clone', 0x01200011)).toBe(ALLOWED);
    expect(call('prlimit64', 0, 7)).toBe(ALLOWED);
  });

  it('refuses calls that reach other processes or open namespaces', () => {
    expect(call('ptrace', 16, 1)).toBe(EPERM);
    expect(call('clone', 0x10000000)).toBe(EPERM);
    expect(call('clone3')).toBe(ENOSYS);
    expect(call('vmsplice', 4)).toBe(EPERM);
    expect(call('io_setup', 1)).toBe(EPERM);
    expect(call('fcntl', 0, 1031)).toBe(EPERM);
    expect(call('fcntl', 0, 1032)).toBe(ALLOWED);
    expect(call('prlimit64', 1, 7)).toBe(EPERM);
    expect(answer(closed, 0x40000003, 1)).toBe(EPERM);
  });

  it('refuses anonymous shared memory and huge pages', () => {
    expect([0x22, 0x01, 0x02].map((flags) => call('mmap', 0, 4096, 3, flags))).toEqual([ALLOWED, ALLOWED, ALLOWED]);
    expect([0x21, 0x23, 0x40022].map((flags) => call('mmap', 0, 4096, 3, flags))).toEqual([EPERM, EPERM, EPERM]);
  });

  it('refuses to change the priority of other processes', () => {
    expect([call('setpriority', 0, 0, 19), call('setpriority', 0, 1, 19), call('setpriority', 2, 0, 19)]).toEqual([ALLOWED, EPERM, EPERM]);
    expect([call('sched_setaffinity', 0, 8), call('sched_setaffinity', 1, 8)]).toEqual([ALLOWED, EPERM]);
    expect([call('ioprio_set', 1, 0), call('ioprio_set', 1, 1), call('ioprio_set', 3, 0)]).toEqual([ALLOWED, EPERM, EPERM]);
  });

  it('allows internet sockets only with the network option', () => {
    const families = [1, 2, 10, 16, 17, 40];
    const through = (filter: Buffer) => families.filter((family) => answer(filter, AUDIT[arch], CALLS.socket[arch], [family]) === ALLOWED);
    expect(through(closed)).toEqual([1]);
    expect(through(open)).toEqual([1, 2, 10, 16]);
    const pairs = (filter: Buffer) =>
      families.filter((family) => answer(filter, AUDIT[arch], CALLS.socketpair[arch], [family]) === ALLOWED);
    expect([pairs(closed), pairs(open)]).toEqual([[1], [1]]);
  });
});

it('has no filter for an unknown architecture', () => {
  expect(seccompFilter('mips')).toBeNull();
});
