import { describe, expect, it } from 'vitest';
import { nestCommand, singleCommand, type BubblewrapOptions } from './bubblewrap-command.js';
import { seccompFilter } from './seccomp.js';

const options: BubblewrapOptions = {
  bwrapPath: '/usr/bin/bwrap',
  pythonPath: '/usr/bin/python3',
  safePath: true,
  sizes: true,
  missing: new Set(),
};

describe('the command of a sandbox', () => {
  it('shares no namespace and keeps no capability', () => {
    const command = singleCommand(options, { diskMiB: 3 });
    for (const flag of ['--unshare-all', '--disable-userns', '--die-with-parent', '--new-session', '--clearenv', '--seccomp'])
      expect(command).toContain(flag);
    expect(command).not.toContain('--share-net');
    expect(command.join(' ')).toContain('--cap-drop ALL');
    expect(command.join(' ')).toContain('--size 3145728 --tmpfs /tmp');
  });

  it('has the same walls around a nest', () => {
    const command = nestCommand({ ...options, seccomp: Buffer.from([1, 171]) }, 5);
    for (const flag of ['--unshare-all', '--die-with-parent', '--new-session', '--clearenv']) expect(command).toContain(flag);
    expect(command.join(' ')).toContain('--cap-drop ALL');
    expect(command.at(-1)).toContain('5,"01ab",True');
  });

  it('leaves out only the controls that may be missing', () => {
    const command = singleCommand({ ...options, missing: new Set(['network', 'syscalls', 'nested-namespaces']) }, { diskMiB: 3 });
    expect(command).toContain('--share-net');
    expect(command).not.toContain('--seccomp');
    expect(command).not.toContain('--disable-userns');
    expect(command).toContain('--unshare-all');
  });
});

describe('the system call filter', () => {
  it.each(['x64', 'arm64'])('is a whole program for %s', (arch) => {
    const filter = seccompFilter(arch);
    expect(filter?.length).toBeGreaterThan(300);
    expect((filter?.length ?? 1) % 8).toBe(0);
    // The last instruction allows.
    expect(filter?.readUInt16LE(filter.length - 8)).toBe(0x06);
    expect(filter?.readUInt32LE(filter.length - 4)).toBe(0x7fff0000);
  });

  it('is none where the numbers are not known', () => {
    expect(seccompFilter('riscv64')).toBeNull();
  });
});
