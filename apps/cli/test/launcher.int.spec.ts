import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { ROOT } from './etude.js';

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A checkout in which nothing is left to install or build, and whose Node.js prints what the launcher says it was called by. */
function checkout(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'etude-launcher-')));
  onTestFinished(() => rmSync(root, { recursive: true }));
  copyFileSync(join(ROOT, 'etude'), join(root, 'etude'));
  for (const path of ['package-lock.json', 'node_modules/.etude-package-lock.json']) write(join(root, path), '{}');
  write(join(root, 'node_modules/.bin/node'), '#!/bin/sh\nprintf %s "$ETUDE_CALLED_AS"\n');
  chmodSync(join(root, 'node_modules/.bin/node'), 0o755);
  write(join(root, 'apps/cli/dist/main.js'), '');
  write(join(root, '.etude/cache/built'), '');
  return root;
}

const called = (file: string, cwd: string, path = '/usr/bin:/bin') =>
  execFileSync('/bin/sh', ['-c', 'exec "$0" status', file], { cwd, env: { PATH: path }, encoding: 'utf8' });

it('says by which name or path it was called', () => {
  const root = checkout();
  expect(called('./etude', root)).toBe('./etude');
  expect(called('../etude', join(root, 'apps'))).toBe('../etude');
  expect(called(join(root, 'etude'), '/')).toBe(join(root, 'etude'));
  expect(called('etude', '/', `${root}:/usr/bin:/bin`)).toBe('etude');
  mkdirSync(join(root, 'bin'));
  symlinkSync('../etude', join(root, 'bin', 'learn'));
  expect(called('learn', '/', `${join(root, 'bin')}:/usr/bin:/bin`)).toBe('learn');
});
