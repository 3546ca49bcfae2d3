import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { EXIT } from '../errors.js';
import { holdStack } from '../home/stack-state.js';
import { runCommand } from '../program.js';

async function run(...words: readonly string[]) {
  let stderr = '';
  const exit = await runCommand(words, {
    environment: {},
    stdout: { write: () => true },
    stderr: { write: (text) => (stderr += text) },
    signal: new AbortController().signal,
  });
  return { exit, stderr };
}

it('backs up no stack that does not run', async () => {
  const home = temporaryFolder();
  const { exit, stderr } = await run('--home', home, 'backup', join(home, 'copy'));
  expect(exit).toBe(EXIT.unavailable);
  expect(stderr).toMatch(/no stack runs in .*\n.*etude up --home/);
});

it('restores into no stack that runs', async () => {
  const home = temporaryFolder();
  const processes = [{ name: 'redis', pid: 1, restarts: 0, ready: true }];
  const texts = { address: '', rest: '', mcp: '', model: '', sandbox: 'local', memory: 'sqlite', embedder: 'lexical' };
  const state = { pid: 1, scripted: null, modelUrl: null, embedderSocket: null, ready: true, startedAt: 1, processes, ...texts };
  const lock = await holdStack(home, () => state);
  const { exit, stderr } = await run('--home', home, 'restore', home);
  lock?.close();
  expect(exit).toBe(EXIT.conflict);
  expect(stderr).toContain('a stack runs in');
});

it('refuses a folder without a manifest before it changes the home', async () => {
  const [home, folder] = [temporaryFolder(), temporaryFolder()];
  writeFileSync(join(folder, 'memory.sqlite'), '');
  expect((await run('--home', home, 'restore', folder)).exit).toBe(EXIT.failed);
});
