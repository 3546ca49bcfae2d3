import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const source = join(root, 'sdks/typescript');
const run = promisify(execFile);

let dir: string;
let stack: TestStack;

/** An empty folder, in which only the packed client and its dependencies are installed. */
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-typescript-'));
  const starting = startStack({
    script: join(root, 'sdks/python/tests/model.yaml'),
    env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  cpSync(join(source, 'tests'), join(dir, 'tests'), { recursive: true });
  cpSync(join(source, 'README.md'), join(dir, 'README.md'));
  const cwd = join(dir, 'tests');
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd });
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', dir], { cwd: source });
  const [tarball = ''] = readdirSync(dir).filter((name) => name.endsWith('.tgz'));
  const target = join(cwd, 'node_modules/@etude/client');
  mkdirSync(target, { recursive: true });
  await run('tar', ['-xzf', join(dir, tarball), '--strip-components=1', '-C', target]);
  stack = await starting;
  await stack.startRolloutWorker();
});

afterAll(async () => {
  await stack?.stop();
  rmSync(dir, { recursive: true, force: true });
});

// The project's own Node, and the machine's, which is often an older one.
it.each([
  ['the newest Node', process.execPath],
  ['the Node of the machine', 'node'],
])('passes its tests from its tarball, against a real stack, with %s', async (_, node) => {
  const env = { PATH: process.env['PATH'], ETUDE_ADDRESS: stack.address, MODEL_URL: `${stack.modelUrl}/v1` };
  const tests = ['--test', '--test-reporter=tap', 'client.test.js', 'frameworks.test.js'];
  const { stdout } = await run(node, tests, { cwd: join(dir, 'tests'), env, timeout: 110_000 }).catch((error: unknown) => {
    throw new Error((error as { readonly stdout: string }).stdout);
  });
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(stdout).toMatch(/^# pass 15$/m);
});
