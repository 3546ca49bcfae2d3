import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startLocalDriver } from '../src/local-driver.js';
import { call, program, requestOf, startLocal, type StartedSandboxes } from './sandbox-fixture.js';
import { SupervisorProcess } from './supervisor-fixture.js';

const signal = new AbortController().signal;
let overlaysPath = '';
let local: StartedSandboxes;

beforeAll(async () => {
  overlaysPath = await mkdtemp(join(tmpdir(), 'etude-overlays-'));
  // The same layout as `pip install --target`: every user can read the files.
  const folder = join(overlaysPath, 'numerals', 'roman_digits');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, '__init__.py'), 'def digits(n):\n    return "I" * n\n');
  await chmod(overlaysPath, 0o755);
  local = await startLocal({ warm: 1, overlaysPath });
});
afterAll(async () => {
  await local?.close();
  await rm(overlaysPath, { recursive: true, force: true });
});

const run = async (template: string | undefined, ...runs: Parameters<typeof requestOf>[0]) =>
  (await local.sandboxes.execute(requestOf(runs, template === undefined ? {} : { template }), signal)).runs;
const startWith = async (path: string) => {
  const driver = await startLocalDriver({ warm: 0, overlaysPath: path });
  await driver.close();
};

describe('packages of a pod', () => {
  it('can be imported in every interpreter of its supervisor', async () => {
    const supervisor = await SupervisorProcess.start({}, '', join(overlaysPath, 'numerals'));
    onTestFinished(() => supervisor.stop());
    const peer = await supervisor.bound();
    const looking = program('import roman_digits; print(roman_digits.__file__)');
    const stdout = '/opt/etude/packages/roman_digits/__init__.py\n';
    expect(await peer.run(looking)).toMatchObject({ stdout });
    expect(await peer.run(looking, { hashSeed: 7 })).toMatchObject({ stdout });
  });
});

describe('packages of a local sandbox', () => {
  it('can be imported only in their template, in each of its interpreters', async () => {
    const looking = program('import roman_digits; print(roman_digits.__file__)');
    const where = '/opt/etude/packages/roman_digits/__init__.py\n';
    const [warm, called] = await run('numerals', looking, call(`import roman_digits\ndef f(n):\n    return roman_digits.digits(n)`, [2]));
    expect([warm?.stdout, called?.value]).toEqual([where, 'II']);
    const request = { ...requestOf([looking], { template: 'numerals' }), hashSeed: 7 };
    expect((await local.sandboxes.execute(request, signal)).runs[0]?.stdout).toBe(where);
    expect((await run(undefined, looking))[0]?.stderr).toContain("No module named 'roman_digits'");
  });

  it('hide no module of the standard library, and cannot be changed', async () => {
    const writing = program('open("/opt/etude/packages/roman_digits/__init__.py", "a").write("x")');
    const [first] = await run('numerals', writing);
    expect(first?.stderr).toMatch(/Read-only file system|Permission denied/);
    await writeFile(join(overlaysPath, 'numerals', 'json.py'), 'raise SystemExit("hidden")\n');
    const [result] = await run('numerals', program('import json; print(json.dumps([1]))'));
    await rm(join(overlaysPath, 'numerals', 'json.py'));
    expect(result?.stdout).toBe('[1]\n');
  });

  it('can be imported in single sandboxes, and in the default template', async () => {
    const everywhere = await mkdtemp(join(tmpdir(), 'etude-overlays-'));
    await chmod(everywhere, 0o755);
    await mkdir(join(everywhere, 'default'));
    await writeFile(join(everywhere, 'default', 'tiny.py'), 'ONE = 1\n');
    const single = await startLocal({ warm: 1, isolation: 'single', overlaysPath: everywhere });
    const { runs } = await single.sandboxes.execute(requestOf([program('import tiny; print(tiny.ONE)')]), signal);
    await single.close();
    await rm(everywhere, { recursive: true });
    expect(runs[0]?.stdout).toBe('1\n');
  });

  it('are refused at the start if their folder can not be used', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'etude-overlays-'));
    await chmod(folder, 0o755);
    const starting = () => startWith(folder);
    await mkdir(join(folder, 'Not_A_Name'));
    await expect(starting()).rejects.toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('"Not_A_Name"') });
    await rm(join(folder, 'Not_A_Name'), { recursive: true });
    await writeFile(join(folder, 'requirements.txt'), '');
    await expect(starting()).resolves.toBeUndefined();
    await expect(startWith(join(folder, 'nowhere'))).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/ETUDE_SANDBOX_OVERLAYS_PATH.*nowhere/),
    });
    await mkdir(join(folder, 'locked'), { mode: 0o000 });
    await expect(starting()).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringMatching(/template "locked" can't be used: PermissionError.*must be readable to every user/),
    });
    await rm(folder, { recursive: true });
  });

  it('are listed by template if a request names an unknown template', async () => {
    await expect(run('science', program('1'))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'no sandbox template "science"; use one of default, numerals',
    });
  });
});
