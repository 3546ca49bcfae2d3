import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { ManagedProcess } from './managed-process.js';

function shell(script: string, readyTimeoutMs: number): ManagedProcess {
  const dir = temporaryFolder();
  const program = {
    name: 'thing',
    command: '/bin/sh',
    args: ['-c', script],
    env: {},
    cwd: dir,
    ready: 'takes work',
    logPath: join(dir, 'log'),
    readyTimeoutMs,
  };
  const managed = new ManagedProcess(program, () => undefined);
  onTestFinished(() => managed.stop());
  return managed;
}

it('says what a process printed that ends before it is ready', async () => {
  await expect(shell('echo no room >&2; exit 3', 60_000).start()).rejects.toThrow(
    /^thing ended with 3 before .*The end of .*log:\nno room$/s,
  );
});

it('says of a silent one how long it was waited for', async () => {
  await expect(shell('exec sleep 60', 50).start()).rejects.toThrow(/^thing was not ready within 0.05 s/);
});
