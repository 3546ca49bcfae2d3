import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory, SkillOffer } from '../../ports/memory.js';
import { describe, expect, it } from 'vitest';
import { errorOf, printed, registryOf, skillOf, provenSkillOf, TEST_SIGNER } from '../../../test/bundle-fixture.js';
import { loadFunctions, pinnedTo } from './bundle-code.js';

const reader = { tenant: 'acme', agent: 'solver', user: 'ann' };
const ADD = provenSkillOf('add', 'def add(a, b):\n    return a + b', { a: {}, b: {} });
const TWICE = provenSkillOf('twice', 'import skills\ndef twice(x):\n    return skills.add(x, x)', { x: {} }, { needs: [ADD] });
const PROGRAM = provenSkillOf('shout', 'print(1)', {}, { entryPoint: null });
const SHOWN = provenSkillOf('shown', 'def shown(): return 1', {}, { kind: 'snippet' });
const registry = registryOf(ADD, TWICE, PROGRAM, SHOWN, skillOf('unproven', 'def unproven(): ...'));
const offers: SkillOffer[] = [];
const procedural = { ...registry, countOffers: async (more: readonly SkillOffer[]) => void offers.push(...more) };
const deps = { procedural, checker: TEST_SIGNER, clock: { now: () => 7 } };

describe('loadFunctions', () => {
  it('loads several functions with their callees', async () => {
    const { functions, code } = await loadFunctions(reader, ['twice', 'add', 'twice'], deps);
    expect(functions).toEqual([
      { name: 'twice', version: 1, digest: TWICE.digest, signature: 'def twice(x)', description: 'Does what twice does.' },
      { name: 'add', version: 1, digest: ADD.digest, signature: 'def add(a, b)', description: 'Does what add does.' },
    ]);
    expect(await printed(`${code}print(twice(2), add(1, 2))`)).toBe('4 3');
  });

  it('refuses all where one is missing, a program or unproven', async () => {
    expect(await errorOf(loadFunctions(reader, ['add', 'x', 'y'], deps))).toMatch(/^NOT_FOUND: .*x, y/);
    expect(await errorOf(loadFunctions(reader, ['shout'], deps))).toMatch(
      /^FAILED_PRECONDITION: the code needs shout@1, which is a program/,
    );
    expect(await errorOf(loadFunctions(reader, ['shown'], deps))).toMatch(
      /^FAILED_PRECONDITION: .*shown@1, which is a snippet, whose code was never run/,
    );
    expect(await errorOf(loadFunctions(reader, ['unproven'], deps))).toMatch(/^FAILED_PRECONDITION: .*evidence/);
  });

  it('counts each requested function once, and none after a refusal', async () => {
    offers.length = 0;
    await errorOf(loadFunctions(reader, ['add', 'unproven'], deps));
    expect(offers).toEqual([]);
    await loadFunctions(reader, ['twice', 'twice'], deps);
    expect(offers).toEqual([{ ...TWICE.scope, name: 'twice', version: 1, loadedAt: 7 }]);
  });
});

const pins = (names: readonly string[], self: Skill, from = procedural as Pick<ProceduralMemory, 'versions'>) =>
  pinnedTo(names, self, from).then(({ dependencies }) => dependencies);

describe('pinnedTo', () => {
  const mine = skillOf('mine', 'x', { scope: { ...ADD.scope, user: 'ann' } });
  const wide = skillOf('wide', 'x', { scope: { ...ADD.scope, agent: '@tenant' } });

  it('pins the active version and its digest', async () => {
    expect(await pins(['add', 'add'], mine, registryOf(ADD, { ...ADD, version: 3 }))).toEqual([
      { name: 'add', tenant: 'acme', agent: 'solver', user: null, version: 3, digest: ADD.digest },
    ]);
    expect(await pins(['add'], wide, registryOf({ ...ADD, scope: wide.scope }))).toMatchObject([{ agent: '@tenant' }]);
  });

  it.each([
    ['is missing', 'none', mine, /^FAILED_PRECONDITION: mine calls skills.none, and there is no active skill/],
    ['its readers can not read', 'add', wide, /no active skill of that name that its readers can read/],
    ['is itself', 'mine', mine, /mine -> mine/],
    ['calls it', 'twice', skillOf('add', 'x'), /add -> twice -> add/],
    ['is a program', 'shout', mine, /is a program/],
    ['is a snippet', 'shown', mine, /^FAILED_PRECONDITION: shown@1 is a snippet/],
  ])('refuses a skill that %s', async (_what, name, self, message) => {
    expect(await errorOf(pins([name], self))).toMatch(message);
  });
});
