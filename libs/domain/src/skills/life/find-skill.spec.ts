import type { Scope, Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { skillOf } from '../../../test/memory-records.js';
import { storeAt } from '../../../test/skill-lives.js';
import { findSkill, isReadBy, ownerOf, searchSkills, type SkillReader } from './find-skill.js';

const ANN = { tenant: 'acme', agent: 'coder', user: 'ann' };
const NOBODY: SkillReader = { ...ANN, user: null };
const GLOBAL: Scope = { tenant: '@global', agent: '@tenant', user: null };
const WIDEST_FIRST: readonly Scope[] = [
  GLOBAL,
  { tenant: 'acme', agent: '@tenant', user: null },
  { tenant: 'acme', agent: '@user', user: 'ann' },
  { tenant: 'acme', agent: 'coder', user: null },
  { tenant: 'acme', agent: 'coder', user: 'ann' },
];
const codeIn = ({ tenant, agent, user }: Scope) => `print('${tenant} ${agent} ${user}')`;
const ownOf = (scope: Scope, changes: Partial<Skill> = {}) => skillOf({ scope, code: codeIn(scope), status: 'active', ...changes });

describe('findSkill', () => {
  it('finds the active skill of the narrowest owner', async () => {
    const procedural = new FakeProceduralMemory();
    expect(await findSkill(procedural, ANN, 'sum_even')).toBeNull();
    for (const scope of WIDEST_FIRST) {
      await storeAt(procedural, ownOf(scope));
      expect((await findSkill(procedural, ANN, 'sum_even'))?.scope).toEqual(scope);
    }
    expect((await findSkill(procedural, NOBODY, 'sum_even'))?.scope).toEqual({ tenant: 'acme', agent: 'coder', user: null });
    expect((await findSkill(procedural, { ...ANN, agent: 'tester', user: 'bob' }, 'sum_even'))?.scope.agent).toBe('@tenant');
    expect((await findSkill(procedural, { ...ANN, tenant: 'beta' }, 'sum_even'))?.scope).toEqual(GLOBAL);
  });

  it('skips a candidate for a wider active skill', async () => {
    const procedural = new FakeProceduralMemory();
    await storeAt(procedural, ownOf(GLOBAL));
    const own = await procedural.store(ownOf(ANN));
    expect((await findSkill(procedural, ANN, 'sum_even'))?.scope).toEqual(GLOBAL);
    expect(await findSkill(procedural, ANN, 'sum_even', { status: 'any' })).toEqual(own);
    expect(await findSkill(procedural, ANN, 'sum_even', { status: 'candidate' })).toEqual(own);
    expect(await findSkill(procedural, ANN, 'sum_even', { version: own.version })).toEqual(own);
    expect(await findSkill(procedural, ANN, 'sum_even', { version: 7 })).toBeNull();
  });

  it('follows replacements and stops at a circle', async () => {
    const procedural = new FakeProceduralMemory();
    const replace = (name: string, replacedBy: string) => procedural.keep(ownOf(ANN, { name, status: 'deprecated', replacedBy }));
    replace('old', 'older');
    replace('older', 'new');
    const present = await storeAt(procedural, ownOf(ANN, { name: 'new' }));
    expect(await findSkill(procedural, ANN, 'old')).toEqual(present);
    replace('left', 'right');
    replace('right', 'left');
    replace('lost', 'nowhere');
    expect(await findSkill(procedural, ANN, 'left')).toBeNull();
    expect(await findSkill(procedural, ANN, 'lost')).toBeNull();
    expect((await findSkill(procedural, ANN, 'old', { version: 1 }))?.name).toBe('old');
  });
});

it('searches for the narrowest skill of a name, with all tags', async () => {
  const procedural = new FakeProceduralMemory();
  for (const scope of WIDEST_FIRST) await storeAt(procedural, ownOf(scope, { tags: ['math'] }));
  await storeAt(procedural, ownOf(GLOBAL, { name: 'even_too', tags: ['math', 'lists'] }));
  const names = async (reader: SkillReader, tags?: string[]) =>
    (await searchSkills(procedural, reader, { text: 'even numbers', limit: 5, ...(tags === undefined ? {} : { tags }) })).map(
      ({ skill }) => [skill.name, skill.scope.agent, skill.scope.user],
    );
  expect(new Set(await names(ANN))).toEqual(
    new Set([
      ['even_too', '@tenant', null],
      ['sum_even', 'coder', 'ann'],
    ]),
  );
  expect(await names(NOBODY, ['lists'])).toEqual([['even_too', '@tenant', null]]);
  expect(await names(NOBODY, ['none'])).toEqual([]);
});

const PEOPLE = fc.record({
  tenant: fc.constantFrom('acme', 'acm', 'beta'),
  agent: fc.constantFrom('coder', 'tester'),
  user: fc.constantFrom('ann', 'an', null),
});
const SHARES = fc.record({ who: PEOPLE, scope: fc.constantFrom('agent', 'user', 'tenant', 'global'), name: fc.constantFrom('one', 'two') });

it('shows nobody the skills of another tenant, agent or user', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(SHARES, { minLength: 3, maxLength: 15 }), fc.array(PEOPLE, { minLength: 2 }), async (shares, readers) => {
      const procedural = new FakeProceduralMemory();
      const kept: Scope[] = [];
      for (const { who, scope, name } of shares) {
        if (scope === 'user' && who.user === null) continue;
        const owner = ownerOf(scope, who);
        kept.push(owner);
        await storeAt(procedural, ownOf(owner, { name }));
      }
      for (const reader of readers) {
        const hits = await searchSkills(procedural, reader, { text: 'even numbers', limit: 50 });
        const named = await Promise.all(['one', 'two'].map((name) => findSkill(procedural, reader, name)));
        const any = await Promise.all(['one', 'two'].map((name) => findSkill(procedural, reader, name, { status: 'any' })));
        const shown = [...hits.map(({ skill }) => skill), ...named, ...any].filter((skill) => skill !== null);
        for (const { scope } of shown) expect(isReadBy(scope, reader) && isAllowed(scope, reader)).toBe(true);
        expect(hits.length > 0).toBe(kept.some((owner) => isAllowed(owner, reader)));
      }
    }),
    { numRuns: 60 },
  );
});

/** The rule about who sees a skill, written again without the list of owners. */
function isAllowed(owner: Scope, reader: Scope): boolean {
  if (owner.user !== null && owner.user !== reader.user) return false;
  if (owner.tenant === '@global') return true;
  return owner.tenant === reader.tenant && (owner.agent.startsWith('@') || owner.agent === reader.agent);
}
