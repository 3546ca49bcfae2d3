import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const source = join(root, 'sdks/python');
const run = promisify(execFile);

let dir: string;
let python: string;
let stack: TestStack;

/** Runs a program of the environment into which only the built package and its dependencies were installed. */
async function inside(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return run(python, [...args], { cwd: dir, env: { PATH: process.env['PATH'], ...env }, timeout: 110_000 }).catch((error: unknown) => {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
    throw new Error(`python ${args.join(' ')}\n${stdout}\n${stderr}`);
  });
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-python-'));
  const starting = startStack({
    script: join(source, 'tests/model.yaml'),
    env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  await run('python3', ['-m', 'venv', join(dir, 'venv')]);
  python = join(dir, 'venv/bin/python');
  const pip = ['-m', 'pip', '--disable-pip-version-check', '-q'];
  await inside([...pip, 'install', '--require-hashes', '--only-binary=:all:', '-r', join(source, 'tests/requirements.txt')]);
  // A copy, since setuptools writes beside the sources.
  cpSync(source, join(dir, 'package'), { recursive: true });
  await inside([...pip, 'wheel', '--no-deps', '--no-build-isolation', '-w', join(dir, 'wheels'), join(dir, 'package')]);
  const [wheel = ''] = readdirSync(join(dir, 'wheels'));
  await inside([...pip, 'install', '--no-deps', join(dir, 'wheels', wheel)]);
  stack = await starting;
  await stack.startRolloutWorker();
});

afterAll(async () => {
  await stack?.stop();
  rmSync(dir, { recursive: true, force: true });
});

it.each(['test_client', 'test_frameworks'])('passes %s from its wheel, against a real stack', async (name) => {
  const env = { ETUDE_ADDRESS: stack.address, MODEL_URL: `${stack.modelUrl}/v1`, PYTHONPATH: join(dir, 'package/tests') };
  const { stderr } = await inside(['-m', 'unittest', name], env);
  expect(stderr).toMatch(/^Ran \d+ tests[^]*\nOK\n$/m);
});

it('is typed throughout', async () => {
  const pyright = join(root, 'node_modules/pyright/index.js');
  const { stdout } = await run(process.execPath, [pyright, '--pythonpath', python, '-p', source], { timeout: 110_000 });
  expect(stdout).toMatch(/^0 errors/m);
});

it('has messages and a synchronous client that are current', async () => {
  await inside([join(source, 'tools/generate.py'), join(dir, 'again')]);
  const again = join(dir, 'again/etude');
  const files = readdirSync(again, { recursive: true, encoding: 'utf8' }).filter((file) => /\.pyi?$/.test(file));
  expect(files.length).toBeGreaterThan(20);
  const stale = files.filter((file) => readFileSync(join(source, 'src/etude', file), 'utf8') !== readFileSync(join(again, file), 'utf8'));
  expect(stale).toEqual([]);
});
