import { join } from 'node:path';
import { until } from '@etude/test-support/until';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { ManagedProcess } from './managed-process.js';

it('ends a program that misses three checks in a row, and starts it again', async () => {
  const folder = temporaryFolder();
  const notes: string[] = [];
  // The first program answers once in between, the second one always.
  const answers = [false, false, true, false, false, false];
  const check = {
    answers: async () => {
      if (answers.shift() === false) throw new Error('silent');
    },
    everyMs: 1,
  };
  const script = 'console.log("it is ready"); setInterval(() => undefined, 1_000)';
  const program = { name: 'sleeper', command: process.execPath, args: ['-e', script], env: {}, cwd: folder, ready: 'is ready', check };
  const sleeper = new ManagedProcess({ ...program, logPath: join(folder, 'log') }, (note) => notes.push(note));
  onTestFinished(() => sleeper.stop());
  await sleeper.start();
  const first = sleeper.pid;
  await until(() => notes.includes('sleeper is back'));
  expect(notes).toEqual([
    'sleeper is ready',
    "sleeper doesn't answer; ending it",
    'sleeper ended with SIGKILL; restarting',
    'sleeper is back',
  ]);
  expect([sleeper.restarts, sleeper.pid === first, answers]).toEqual([1, false, []]);
});
