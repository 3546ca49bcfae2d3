import { describe, expect, it } from 'vitest';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import type { MakeMemory } from './memory-conformance-start.js';
import { start } from './memory-conformance-start.js';
import { NEW_YEAR, SCOPE, skillOf } from './memory-records.js';
import { moveOf, storeAt } from './skill-lives.js';

const OWNER = { tenant: 'acme', agent: 'coder' };

/** What every ProceduralMemory keeps of skills that call skills. */
export function skillCallersConformance(make: MakeMemory<ProceduralMemory>): void {
  describe('as a registry of skills that call skills', () => {
    it('finds the skills that call another', async () => {
      const memory = await start(make);
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

    it('lets nothing come into use that calls what is archived', async () => {
      const memory = await start(make);
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

    it('lets nothing go that is called in use, unless its proof goes with it', async () => {
      const memory = await start(make);
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

    it("finds what calls one user's skill", async () => {
      const memory = await start(make);
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

    it("finds what calls everybody's skill in every tenant", async () => {
      const memory = await start(make);
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
