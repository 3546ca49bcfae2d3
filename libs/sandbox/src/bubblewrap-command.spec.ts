import { describe, expect, it } from 'vitest';
import { singleCommand, type BubblewrapOptions } from './bubblewrap-command.js';

const options: BubblewrapOptions = {
  bwrapPath: '/usr/bin/bwrap',
  pythonPath: '/usr/bin/python3',
  safePath: true,
  missing: new Set(),
};

describe('the command of a sandbox', () => {
  it('leaves out optional controls only', () => {
    const command = singleCommand({ ...options, missing: new Set(['network', 'syscalls', 'nested-namespaces']) }, { diskMiB: 3 });
    expect(command).toContain('--share-net');
    expect(command).not.toContain('--seccomp');
    expect(command).not.toContain('--disable-userns');
    expect(command).toContain('--unshare-all');
    const whole = singleCommand(options, { diskMiB: 3 });
    for (const flag of ['--unshare-all', '--disable-userns', '--seccomp']) expect(whole).toContain(flag);
    expect(whole).not.toContain('--share-net');
  });
});
