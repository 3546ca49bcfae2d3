import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { etude } from '../../test/etude.js';
import { testFolder } from '@etude/test-support/test-folder';
import { EXIT } from '../errors.js';
import { holdStack } from '../home/stack-state.js';

it('backs up no stack that does not run', async () => {
  const home = testFolder();
  const { exit, stderr } = await etude(['--home', home, 'backup', join(home, 'copy')]);
  expect(exit).toBe(EXIT.unavailable);
  expect(stderr).toMatch(/no stack runs in .*\n.*etude up --home/);
});

/** Locks a home as a supervisor with this process id does. */
function hold(home: string, pid: number) {
  const processes = [{ name: 'redis', pid: 1, restarts: 0, ready: true }];
  const texts = { address: '', rest: '', mcp: '', model: '', sandbox: 'local', memory: 'sqlite', embedder: 'lexical' } as const;
  const state = { pid, scripted: null, modelUrl: null, embedderSocket: null, ready: true, startedAt: 1, processes, ...texts };
  return holdStack(home, () => state);
}

it('stops a stack whose parent never asks how it ended', async () => {
  const home = testFolder();
  const program = 'import subprocess, sys; print(subprocess.Popen(["sleep", "60"]).pid, flush=True); sys.stdin.read()';
  const parent = spawn('python3', ['-c', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lock = await hold(home, Number(await once(parent.stdout, 'data')));
  expect(await etude(['--home', home, 'down'])).toMatchObject({ exit: EXIT.ok });
  lock?.close();
  parent.stdin.end();
  await once(parent, 'exit');
});

it('restores into no stack that runs', async () => {
  const home = testFolder();
  const lock = await hold(home, 1);
  const { exit, stderr } = await etude(['--home', home, 'restore', home]);
  lock?.close();
  expect(exit).toBe(EXIT.conflict);
  expect(stderr).toContain('a stack runs in');
});

it('refuses a folder without a manifest before it changes the home', async () => {
  const [home, folder] = [testFolder(), testFolder()];
  writeFileSync(join(folder, 'memory.sqlite'), '');
  expect((await etude(['--home', home, 'restore', folder])).exit).toBe(EXIT.failed);
});
