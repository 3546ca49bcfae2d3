import type { Skill } from '@etude/contracts/memory';
import { describe, expect } from 'vitest';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { PROMOTED_MARK, SAME_CODE_MARK } from '../src/skills/life/carried-over.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { ALL, type MakeMemory, withMemory } from './memory-conformance-start.js';
import { NEW_YEAR, SCOPE, skillOf } from './memory-records.js';
import { moveOf, storeAt } from './skill-lives.js';

const OWNER = { tenant: 'acme', agent: 'coder' };
const other = (letter: string) => ({ code: `def total(xs): return '${letter}'` });

/** The conformance suite for storing a skill: the limit of names, its marks and its version. */
export function skillStoringConformance(make: MakeMemory<ProceduralMemory>): void {
  const it = withMemory(make);
  describe('as a store of skills', () => {
    it('never exceeds the limit of names, also with concurrent calls', async ({ memory }) => {
      const register = (name: string, more: Partial<Skill> = {}) => memory.store(skillOf({ name, ...more }), { namesMax: 3 });
      const raced = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => register(`skill_${i}`)));
      expect(raced.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
      const refusals = raced.flatMap((one) =>
        one.status === 'rejected' ? [one.reason as { code: string; details: { field: string } }] : [],
      );
      expect(refusals.every(({ code, details }) => code === 'FAILED_PRECONDITION' && details.field === 'max_skills')).toBe(true);
      expect(await memory.countNames(OWNER)).toBe(3);
      const [kept] = await Array.fromAsync(memory.every({ ...OWNER }));
      expect(await register(kept!.name, other('b'))).toMatchObject({ version: 2 });
      expect(await register('theirs', { scope: { ...SCOPE, agent: 'tester' } })).toMatchObject({ version: 1 });
      await memory.move((await memory.versions(OWNER, kept!.name)).map((version) => moveOf(version, 'archived')));
      expect(await register('next')).toMatchObject({ version: 1 });
      await expect(register('one_more')).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    });

    it('archives a skill that is set aside, without counting its name', async ({ memory }) => {
      await memory.store(skillOf({ name: 'first' }), { namesMax: 1 });
      const aside = await memory.store(skillOf({ name: 'aside', statusReason: 'imported' }), {
        namesMax: 1,
        setAside: 'was harmful',
        by: 'ann',
      });
      expect(aside).toMatchObject({ status: 'archived', statusReason: 'was harmful' });
      expect(aside.history).toEqual([
        { at: NEW_YEAR, by: 'ann', from: null, to: 'candidate', reason: 'imported' },
        { at: NEW_YEAR, by: 'ann', from: 'candidate', to: 'archived', reason: 'was harmful' },
      ]);
      expect(await memory.versions(OWNER, 'aside')).toEqual([aside]);
      expect(await memory.countNames(OWNER)).toBe(1);
      const [kept] = await memory.versions(OWNER, 'first');
      expect(await memory.store(skillOf({ name: 'first' }), { setAside: 'was harmful' })).toEqual(kept);
      expect(await memory.move([moveOf(aside, 'candidate')])).toMatchObject([{ status: 'candidate' }]);
    });

    it('marks code that is marked elsewhere in the tenant', async ({ memory }) => {
      const code = 'def total(xs):\n    return sum(xs)\n';
      const renamed = { code: code.replace('total', 'add_up').replace('\n', '\n    # mine\n'), entryPoint: 'add_up' };
      await memory.store(skillOf({ name: 'a', code, scope: { ...SCOPE, user: 'ann' }, untrusted: ['it came in with imports/x'] }));
      const told = await memory.store(skillOf({ name: 'b', ...renamed, scope: { ...SCOPE, agent: 'tester' } }));
      expect(told.untrusted).toEqual([SAME_CODE_MARK]);
      expect(await memory.store(skillOf({ name: 'c', ...renamed }), { isReviewed: true })).not.toHaveProperty('untrusted');
      expect(await memory.store(skillOf({ name: 'd', code: code.replace('sum', 'max') }))).not.toHaveProperty('untrusted');
      expect(await memory.store(skillOf({ name: 'a', code, scope: { ...SCOPE, tenant: 'beta' } }))).not.toHaveProperty('untrusted');
    });

    it('marks no code because it was promoted', async ({ memory }) => {
      await memory.store(skillOf({ scope: { ...SCOPE, agent: '@tenant' }, untrusted: [PROMOTED_MARK] }), { isReviewed: true });
      expect(await memory.store(skillOf({ name: 'other' }))).not.toHaveProperty('untrusted');
    });

    it('marks no code that its owner uses without a mark', async ({ memory }) => {
      await storeAt(memory, skillOf({ status: 'active' }));
      await memory.store(skillOf({ scope: { ...SCOPE, agent: 'guest' }, untrusted: ['imported'] }));
      const heldOut = [{ kind: 'call' as const, args: [[4]], kwargs: {}, expected: 4, tolerance: 0 }];
      expect(await memory.store(skillOf({ tests: heldOut }))).not.toHaveProperty('untrusted');
      expect(await memory.store(skillOf({ name: 'other' }))).toMatchObject({ untrusted: [SAME_CODE_MARK] });
    });

    it('adds sources and their marks to the existing version', async ({ memory }) => {
      const first = await memory.store(skillOf({ sources: ['tasks/tabcdefgh'] }));
      const both = await memory.store(skillOf({ sources: ['documents/d1'], description: 'as a model words it anew' }));
      expect(both).toMatchObject({ version: 1, sources: ['tasks/tabcdefgh', 'documents/d1'], description: first.description });
      expect(both.untrusted).toEqual(['it was learned where text of documents/d1 was read']);
      expect(both.history).toEqual(first.history);
      expect(await memory.get(ALL, 'sum_even')).toEqual(both);
      expect(await memory.store(skillOf({ sources: ['documents/d1'] }))).toEqual(both);
    });

    it('stores a marked version beside an active unmarked one', async ({ memory }) => {
      const active = await storeAt(memory, skillOf({ status: 'active', sources: ['tasks/tabcdefgh'] }));
      const told = await memory.store(skillOf({ sources: ['documents/d1'] }));
      expect(told).toMatchObject({ version: 2, status: 'candidate', digest: active.digest });
      expect(told.untrusted).toHaveLength(1);
      expect(await memory.store(skillOf({ sources: ['documents/d2'] }))).toMatchObject({
        version: 2,
        sources: ['documents/d1', 'documents/d2'],
      });
      expect(await memory.store(skillOf({ sources: ['tasks/tzzzzzzzz'] }))).toMatchObject({ version: 1, status: 'active' });
      expect(await memory.get(ALL, 'sum_even', 1)).not.toHaveProperty('untrusted');
    });

    it("stores a new version for an author's other words, and none for the same words", async ({ memory }) => {
      await storeAt(memory, skillOf({ status: 'active' }));
      const edit = (changes: Partial<Skill>) => memory.store(skillOf(changes), { words: 'edited' });
      expect(await edit({})).toMatchObject({ version: 1 });
      const worded = { description: 'Other words.', tags: ['new'] };
      expect(await edit(worded)).toMatchObject({ version: 2, status: 'candidate', digest: skillOf().digest, ...worded });
      expect(await edit(worded)).toMatchObject({ version: 2 });
      expect(await memory.versions(OWNER, 'sum_even')).toHaveLength(2);
      await memory.move((await memory.versions(OWNER, 'sum_even')).map((version) => moveOf(version, 'archived')));
      expect(await edit({ description: 'Still other words.' })).toMatchObject({ version: 2, status: 'archived' });
      const kept = await memory.store(skillOf({ description: 'Still other words.' }), { words: 'kept' });
      expect(kept).toMatchObject({ version: 3, status: 'candidate' });
    });
  });
}

/** The conformance suite for skills that call skills. */
export function skillCallersConformance(make: MakeMemory<ProceduralMemory>): void {
  const it = withMemory(make);
  describe('as a registry of skills that call skills', () => {
    it('finds the skills that call another', async ({ memory }) => {
      const needed = await storeAt(memory, skillOf({ name: 'parse', status: 'active' }));
      const pin = dependencyOn(needed);
      for (const scope of [
        { ...SCOPE, agent: '@tenant' },
        { ...SCOPE, tenant: 'beta' },
      ])
        await storeAt(memory, skillOf({ name: 'parse', status: 'active', scope }));
      for (const [name, status] of Object.entries({ a: 'active', b: 'pending_review', c: 'rejected', d: 'candidate' } as const))
        await storeAt(memory, skillOf({ name, status, dependencies: [pin] }));
      await storeAt(memory, skillOf({ name: 'e', status: 'active', dependencies: [{ ...pin, agent: '@tenant' }] }));
      await storeAt(
        memory,
        skillOf({ name: 'f', status: 'active', scope: { ...SCOPE, tenant: 'beta' }, dependencies: [{ ...pin, tenant: 'beta' }] }),
      );
      expect((await memory.dependents({ ...OWNER, name: 'parse' })).map(({ name }) => name).toSorted()).toEqual(['a', 'b']);
      expect(await memory.dependents({ ...OWNER, name: 'a' })).toEqual([]);
    });

    it('activates no caller of an archived skill', async ({ memory }) => {
      const needed = await storeAt(memory, skillOf({ name: 'parse', status: 'active' }));
      const calling = { dependencies: [dependencyOn(needed)] };
      const verified = await storeAt(memory, skillOf({ name: 'a', status: 'verified', ...calling }));
      const once = await storeAt(memory, skillOf({ name: 'b', status: 'deprecated', ...calling }));
      await memory.move([moveOf(needed, 'archived', { reason: 'harmful' })]);
      for (const move of [moveOf(verified, 'active'), moveOf(verified, 'pending_review'), moveOf(once, 'active')])
        await expect(memory.move([move])).rejects.toMatchObject({
          code: 'FAILED_PRECONDITION',
          message: expect.stringContaining('needs parse@1, which is archived (harmful)') as string,
        });
      const both = [moveOf(needed, 'deprecated', { from: ['archived'] }), moveOf(verified, 'active')];
      expect((await memory.move(both)).map(({ status }) => status)).toEqual(['deprecated', 'active']);
    });

    it('archives no callee in use, unless its proof is removed', async ({ memory }) => {
      const needed = await storeAt(memory, skillOf({ name: 'parse', status: 'active' }));
      const between = await storeAt(memory, skillOf({ name: 'a', status: 'active', dependencies: [dependencyOn(needed)] }));
      const caller = await storeAt(memory, skillOf({ name: 'b', status: 'active', dependencies: [dependencyOn(between)] }));
      await memory.move([moveOf(between, 'deprecated')]);
      await expect(memory.move([moveOf(needed, 'archived')])).rejects.toMatchObject({
        code: 'FAILED_PRECONDITION',
        message: expect.stringContaining('is called by b@1 of "coder" (active)') as string,
      });
      const all = [caller, between, needed];
      const archived = await memory.move(all.map((skill) => moveOf(skill, 'archived')));
      expect(archived.map(({ status }) => status)).toEqual(['archived', 'archived', 'archived']);
      await memory.move(all.toReversed().map((skill) => moveOf(skill, skill === between ? 'deprecated' : 'active', { at: NEW_YEAR + 10 })));
      expect(await memory.move([moveOf(needed, 'archived', { proof: null, at: NEW_YEAR + 11 })])).toMatchObject([{ status: 'archived' }]);
    });

    it("finds the callers of one user's skill", async ({ memory }) => {
      for (const user of [null, 'ann', 'bob']) {
        const needed = await storeAt(memory, skillOf({ name: 'parse', status: 'active', scope: { ...SCOPE, user } }));
        if (user === 'bob') continue;
        const scope = { ...SCOPE, user: 'ann' };
        await storeAt(memory, skillOf({ name: `of_${user}`, status: 'active', scope, dependencies: [dependencyOn(needed)] }));
      }
      const callers = async (user?: string | null) =>
        (await memory.dependents({ ...OWNER, ...(user === undefined ? {} : { user }), name: 'parse' })).map(({ name }) => name).toSorted();
      expect([await callers('ann'), await callers(null), await callers('bob')]).toEqual([['of_ann'], ['of_null'], []]);
      expect(await callers()).toEqual(['of_ann', 'of_null']);
    });

    it('finds the callers of a global skill in every tenant', async ({ memory }) => {
      const everybody = { tenant: '@global', agent: '@tenant' };
      const needed = await storeAt(memory, skillOf({ name: 'parse', status: 'active', scope: { ...everybody, user: null } }));
      const pin = dependencyOn(needed);
      for (const tenant of ['acme', 'beta'])
        await storeAt(memory, skillOf({ name: 'a', status: 'active', scope: { ...SCOPE, tenant }, dependencies: [pin] }));
      const found = await memory.dependents({ ...everybody, name: 'parse' });
      expect(found.map(({ scope }) => scope.tenant).toSorted()).toEqual(['acme', 'beta']);
    });
  });
}
