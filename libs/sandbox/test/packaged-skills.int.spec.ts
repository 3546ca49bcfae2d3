import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import { templatesOf } from '@etude/domain/skills/life/skill-packages';
import { registryOf, skillOf, proven, TEST_SIGNER } from '@etude/domain/testing/bundle-fixture';
import { useSkill } from '@etude/domain/skills/proof/use-skill';
import { verifySkill } from '@etude/domain/skills/proof/verify-skill';
import { FakeMemoryOutbox } from '@etude/domain/testing/fake-memory-outbox';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startLocalDriver } from '../src/local-driver.js';
import { call, program, requestOf, startLocal, type StartedSandboxes } from './sandbox-fixture.js';
import { SupervisorProcess } from './supervisor-fixture.js';

const signal = new AbortController().signal;
const PACKAGE = 'roman-digits==1.4.0';
const CODE = 'from roman_digits import digits\ndef double(n: int) -> str:\n    return digits(n * 2)\n';
const TESTS: SkillTest[] = [
  { kind: 'call', args: [2], kwargs: {}, expected: 'IIII', tolerance: 0 },
  { kind: 'call', args: [3], kwargs: {}, expected: 'IIIIII', tolerance: 0 },
  { kind: 'python', setup: 'import roman_digits\n', tests: 'assert double(1) == roman_digits.digits(2)' },
];
const templateFor = templatesOf({ default: [], numerals: [PACKAGE] });
const needing = (packages: string[], code = CODE): Skill => skillOf('double', code, { tests: TESTS, packages });

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

const verify = (skill: Skill) =>
  verifySkill(
    skill,
    {
      sandboxes: local.sandboxes,
      analyser: { analyse: async () => [] },
      mutationScoreMin: 0.5,
      ground: { replaced: null, needed: [], dependents: [], similar: [] },
      attempt: 1,
      templateFor,
    },
    signal,
  );
const run = async (template: string | undefined, ...runs: Parameters<typeof requestOf>[0]) =>
  (await local.sandboxes.execute(requestOf(runs, template === undefined ? {} : { template }), signal)).runs;
const startWith = async (path: string) => {
  const driver = await startLocalDriver({ warm: 0, overlaysPath: path });
  await driver.close();
};

describe('a skill with a package', () => {
  it('is verified and used in the sandbox that has the package', async () => {
    const skill = needing([PACKAGE]);
    const verification = await verify(skill);
    expect(verification).toMatchObject({ passed: true, reason: '', found: { testsPassed: 3 } });
    const active = proven({ ...skill, ...(verification.contract === null ? {} : { contract: verification.contract }) });
    const deps = { procedural: registryOf(active), sandboxes: local.sandboxes, outbox: new FakeMemoryOutbox(), checker: TEST_SIGNER };
    const used = await useSkill(
      { reader: active.scope, name: 'double', parameters: { n: 4 }, useId: 'u1' },
      { ...deps, templateFor, clock: { now: () => 5 } },
      signal,
    );
    expect(used).toMatchObject({ success: true, result: 'IIIIIIII' });
  });

  it('is refused with the allowed packages if no sandbox has its own', async () => {
    expect(await verify(needing(['roman-digits==1.5.0']))).toMatchObject({
      passed: false,
      reason: 'No sandbox has roman-digits==1.5.0. Allowed are, together: roman-digits==1.4.0 (numerals).',
    });
  });

  it('is not verified if it imports an undeclared package', async () => {
    const { passed, reason } = await verify({ ...needing([]), origin: 'person' });
    expect({ passed, reason }).toEqual({ passed: false, reason: expect.stringMatching(/raised ModuleNotFoundError at line 1/) });
  });
});

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
      message: 'there is no sandbox template "science", only default, numerals',
    });
  });
});
