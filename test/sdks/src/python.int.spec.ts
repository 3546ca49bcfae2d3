import { execFile, spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const source = join(root, 'sdks/python');
const run = promisify(execFile);

const versionOf = (command: string) => {
  const { stdout } = spawnSync(command, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], { encoding: 'utf8' });
  return (stdout ?? '').trim();
};

/** Path of this version: from PATH, or from the folders of pyenv and uv. */
function findPython(version: string): string | undefined {
  const kept = ['.pyenv/versions/*/bin', '.local/share/uv/python/*/bin'].map((place) => join(homedir(), place, `python${version}`));
  return [`python${version}`, ...globSync(kept)].find((command) => versionOf(command) === version);
}

const MACHINES = versionOf('python3');
const OTHERS = ['3.10', '3.11', '3.12', '3.13', '3.14'].filter((version) => version !== MACHINES);
/** Dependencies of the package, without those of its adapters for frameworks. */
const NEEDS = /^(grpcio|protobuf|googleapis-common-protos|typing-extensions)==/;

let dir: string;
let python: string;
let wheel: string;
let starting: Promise<TestStack>;
let stack: TestStack;

/** Runs a program of an environment into which only the built package and its dependencies were installed. */
async function inside(args: readonly string[], env: Readonly<Record<string, string>> = {}, command = python) {
  return run(command, [...args], { cwd: dir, env: { PATH: process.env['PATH'], ...env }, timeout: 280_000 }).catch((error: unknown) => {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
    throw new Error(`${command} ${args.join(' ')}\n${stdout}\n${stderr}`);
  });
}

const pip = (...args: readonly string[]) => inside(['-m', 'pip', '--disable-pip-version-check', '-q', ...args]);
const LOCKED = ['--require-hashes', '--only-binary=:all:', '-r'];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-python-'));
  starting = startStack({
    script: join(source, 'tests/model.yaml'),
    env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  await run('python3', ['-m', 'venv', join(dir, 'venv')]);
  python = join(dir, 'venv/bin/python');
  await pip('install', ...LOCKED, join(source, 'tests/requirements.txt'));
  // Builds a copy, because setuptools writes beside the sources.
  cpSync(source, join(dir, 'package'), { recursive: true });
  await pip('wheel', '--no-deps', '--no-build-isolation', '-w', join(dir, 'wheels'), join(dir, 'package'));
  const [name = ''] = readdirSync(join(dir, 'wheels'));
  wheel = join(dir, 'wheels', name);
  await pip('install', '--no-deps', wheel);
  stack = await starting;
  await stack.startRolloutWorker();
});

afterAll(async () => {
  // Stops the stack even if the installation failed before the stack was ready.
  await (await starting).stop();
  rmSync(dir, { recursive: true, force: true });
});

async function test(command: string, name: string) {
  const env = { ETUDE_ADDRESS: stack.address, MODEL_URL: `${stack.modelUrl}/v1`, PYTHONPATH: join(dir, 'package/tests') };
  return (await inside(['-m', 'unittest', name], env, command)).stderr;
}
const PASSED = /^Ran \d+ tests[^]*\nOK\n$/m;

it.each(['test_client', 'test_frameworks'])(`passes %s from its wheel, against a real stack, with Python ${MACHINES}`, async (name) => {
  expect(await test(python, name)).toMatch(PASSED);
});

it.for(OTHERS)('passes test_client from its wheel, against a real stack, with Python %s', async (version, { skip }) => {
  const found = findPython(version);
  skip(found === undefined, `there is no Python ${version} on this machine`);
  const command = join(dir, version, 'bin/python');
  await run(found ?? '', ['-m', 'venv', '--without-pip', join(dir, version)]);
  const lock = readFileSync(join(source, 'tests/requirements.txt'), 'utf8').split(/^(?=\w)/m);
  writeFileSync(join(dir, 'needs.txt'), lock.filter((entry) => NEEDS.test(entry)).join(''));
  // The machine's pip may be too old to run in this Python.
  const place = ['--target', join(dir, version, `lib/python${version}/site-packages`), '--python-version', version];
  await pip('install', ...place, ...LOCKED, join(dir, 'needs.txt'));
  await pip('install', ...place, '--only-binary=:all:', '--no-deps', wheel);
  expect(await test(command, 'test_client')).toMatch(PASSED);
});

it('is typed throughout', async () => {
  const pyright = join(root, 'node_modules/pyright/index.js');
  const { stdout } = await run(process.execPath, [pyright, '--pythonpath', python, '-p', source], { timeout: 280_000 });
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
