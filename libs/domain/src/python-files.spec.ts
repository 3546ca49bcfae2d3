import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

it('passes its Python tests', () => {
  const cwd = fileURLToPath(new URL('../python/', import.meta.url));
  const { status, stderr } = spawnSync('/usr/bin/python3', ['-B', '-W', 'error', '-m', 'unittest', 'discover', '-s', 'test'], {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(stderr).toMatch(/^Ran [1-9]\d* tests .*\n\nOK/m);
  expect(status).toBe(0);
});
