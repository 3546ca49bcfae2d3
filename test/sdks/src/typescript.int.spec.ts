import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const source = join(root, 'sdks/typescript');
/** Older versions of Node, which npm has for Linux on x64. They are fetched once and stay there. */
const nodes = join(root, 'test/sdks/nodes');
const run = promisify(execFile);

let dir: string;
let starting: Promise<TestStack>;
let stack: TestStack;

/** An empty folder, in which only the packed client and its dependencies are installed. */
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-typescript-'));
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund'];
  starting = startStack({
    script: join(root, 'sdks/python/tests/model.yaml'),
    env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  await run('npm', ['install', '--no-save', ...quiet], { cwd: nodes });
  cpSync(join(source, 'tests'), join(dir, 'tests'), { recursive: true });
  cpSync(join(source, 'README.md'), join(dir, 'README.md'));
  const cwd = join(dir, 'tests');
  await run('npm', ['ci', ...quiet], { cwd });
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', dir], { cwd: source });
  const [tarball = ''] = readdirSync(dir).filter((name) => name.endsWith('.tgz'));
  const target = join(cwd, 'node_modules/@etude/client');
  mkdirSync(target, { recursive: true });
  await run('tar', ['-xzf', join(dir, tarball), '--strip-components=1', '-C', target]);
  stack = await starting;
  await stack.startRolloutWorker();
});

afterAll(async () => {
  // Stops the stack even if the installation failed before the stack was ready.
  await (await starting).stop();
  rmSync(dir, { recursive: true, force: true });
});

it.for(['20', '22', '24', '26'])('passes its tests from its tarball, against a real stack, with Node %s', async (version, { skip }) => {
  const isOwn = process.version.startsWith(`v${version}.`);
  const node = isOwn ? process.execPath : join(nodes, `node_modules/node${version}/bin/node`);
  skip(!existsSync(node), `npm has no Node ${version} for this platform`);
  const env = { PATH: process.env['PATH'], ETUDE_ADDRESS: stack.address, MODEL_URL: `${stack.modelUrl}/v1` };
  const tests = ['--test', '--test-reporter=tap', 'client.test.js', 'frameworks.test.js'];
  const { stdout } = await run(node, tests, { cwd: join(dir, 'tests'), env, timeout: 280_000 }).catch((error: unknown) => {
    throw new Error((error as { readonly stdout: string }).stdout);
  });
  expect(stdout).toMatch(/^# fail 0$/m);
  expect(stdout).toMatch(/^# pass 18$/m);
});
