import type { EtudeError } from '@etude/contracts/errors';
import type { SkillOffer } from '../../ports/skill-registry.js';
import { describe, expect, it } from 'vitest';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { registryOf, skillOf } from '../../../test/bundle-fixture.js';
import { provenSkillOf, TEST_SIGNER } from '../../../test/proven-fixture.js';
import { loadFunctions } from './load-functions.js';
import { bundledCode, pinDependencies } from './bundle-code.js';

const reader = { tenant: 'acme', agent: 'solver', user: 'ann' };
const ADD = provenSkillOf('add', 'def add(a, b):\n    return a + b', { a: {}, b: {} });
const TWICE = provenSkillOf('twice', 'import skills\ndef twice(x):\n    return skills.add(x, x)', { x: {} }, { needs: [ADD] });
const PROGRAM = provenSkillOf('shout', 'print(1)', {}, { entryPoint: null });
const SHOWN = provenSkillOf('shown', 'def shown(): return 1', {}, { kind: 'snippet' });
const registry = registryOf(ADD, TWICE, PROGRAM, SHOWN, skillOf('unproven', 'def unproven(): ...'));
const offers: SkillOffer[] = [];
const procedural = { ...registry, countOffers: async (more: readonly SkillOffer[]) => void offers.push(...more) };
const deps = { procedural, checker: TEST_SIGNER, clock: { now: () => 7 } };

async function printed(code: string): Promise<string> {
  const runs = [{ kind: 'program' as const, code, stdin: '' }];
  const request = { executionId: 'e', tenant: 'acme', files: [], stopOnFailure: false, limits: undefined as never, runs };
  const [run] = (await new PythonSandboxes().execute(request)).runs;
  return run?.exit === 'ok' ? run.stdout.trim() : `failed: ${run?.stderr}`;
}

const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error: EtudeError) => `${error.code}: ${error.message}`,
  );

describe('loadFunctions', () => {
  it('brings several in with all that they need', async () => {
    const { functions, code } = await loadFunctions(reader, ['twice', 'add', 'twice'], deps);
    expect(functions).toEqual([
      { name: 'twice', version: 1, digest: TWICE.digest, signature: 'def twice(x)', description: 'Does what twice does.' },
      { name: 'add', version: 1, digest: ADD.digest, signature: 'def add(a, b)', description: 'Does what add does.' },
    ]);
    expect(await printed(`${code}print(twice(2), add(1, 2))`)).toBe('4 3');
  });

  it('refuses all where one is missing, is a program or is not proven', async () => {
    expect(await errorOf(loadFunctions(reader, ['add', 'x', 'y'], deps))).toMatch(/^NOT_FOUND: .*x, y/);
    expect(await errorOf(loadFunctions(reader, ['shout'], deps))).toMatch(/^FAILED_PRECONDITION: shout@1 is a program/);
    expect(await errorOf(loadFunctions(reader, ['shown'], deps))).toMatch(
      /^FAILED_PRECONDITION: shown@1 is a snippet, whose code was never run/,
    );
    expect(await errorOf(loadFunctions(reader, ['unproven'], deps))).toMatch(/^FAILED_PRECONDITION: .*evidence/);
  });

  it('counts each that was asked for once, and nothing of what is refused', async () => {
    offers.length = 0;
    await errorOf(loadFunctions(reader, ['add', 'unproven'], deps));
    expect(offers).toEqual([]);
    await loadFunctions(reader, ['twice', 'twice'], deps);
    expect(offers).toEqual([{ ...TWICE.scope, name: 'twice', version: 1, loadedAt: 7 }]);
  });

  it('loads nothing where nothing is asked for', async () => {
    expect(await loadFunctions(reader, [], deps)).toEqual({ functions: [], pins: [], code: '' });
  });
});

describe('a snippet', () => {
  const caller = { name: 'caller', scope: ADD.scope };

  it('is not pinned, and not brought in where somebody pinned it', async () => {
    expect(await errorOf(pinDependencies(deps.procedural, reader, ['shown'], caller))).toMatch(
      /^FAILED_PRECONDITION: shown@1 is a snippet/,
    );
    expect(() => bundledCode('import skills', [SHOWN])).toThrow('shown@1 is a snippet');
  });
});

describe('pinDependencies', () => {
  const self = { name: 'mine', scope: { tenant: 'acme', agent: 'solver', user: 'ann' } };
  const shared = { tenant: 'acme', agent: '@tenant', user: null };

  it('pins what there is now, by version and digest', async () => {
    const newer = { ...ADD, version: 3 };
    expect(await pinDependencies(registryOf(ADD, newer), reader, ['add', 'add'], self)).toEqual([
      { name: 'add', tenant: 'acme', agent: 'solver', user: null, version: 3, digest: ADD.digest },
    ]);
  });

  it('refuses what is missing, and what others could not read', async () => {
    expect(await errorOf(pinDependencies(deps.procedural, reader, ['none'], self))).toMatch(
      /mine calls skills.none, and there is no active/,
    );
    const wide = { name: 'wide', scope: shared };
    expect(await errorOf(pinDependencies(deps.procedural, reader, ['add'], wide))).toMatch(
      /not everybody who reads wide can read; promote add/,
    );
    expect(await pinDependencies(registryOf({ ...ADD, scope: shared }), reader, ['add'], wide)).toMatchObject([{ agent: '@tenant' }]);
    const theirs = provenSkillOf('add', 'def add(): ...', {}, { scope: { ...self.scope, user: 'bob' } });
    expect(await errorOf(pinDependencies(registryOf(theirs), reader, ['add'], self))).toMatch(/no active skill/);
  });

  it('refuses a call of itself, also through others', async () => {
    expect(await errorOf(pinDependencies(deps.procedural, reader, ['mine'], self))).toContain('mine -> mine');
    const add = { name: 'add', scope: ADD.scope };
    expect(await errorOf(pinDependencies(deps.procedural, reader, ['twice'], add))).toContain('add -> twice -> add');
  });

  it('refuses a program', async () => {
    expect(await errorOf(pinDependencies(deps.procedural, reader, ['shout'], self))).toMatch(/is a program/);
  });
});
