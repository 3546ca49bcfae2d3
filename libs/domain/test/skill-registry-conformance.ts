import { errorCode } from '@etude/contracts/errors';
import { describe, expect } from 'vitest';
import type { ProceduralMemory, SkillMove } from '../src/ports/memory.js';
import { keyOf } from '../src/skills/life/skill-life.js';
import { ALL, type MakeMemory, withMemory } from './memory-conformance-start.js';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from './memory-records.js';
import { moveOf, proofOf, storeAt } from './skill-lives.js';

const OWNER = { tenant: 'acme', agent: 'coder' };
const other = (letter: string) => ({ code: `def total(xs): return '${letter}'` });

/** The conformance suite for the life of skills. */
export function skillRegistryConformance(make: MakeMemory<ProceduralMemory>): void {
  const it = withMemory(make);
  describe('as a SkillRegistry', () => {
    it('stores a candidate, whatever its author claims', async ({ memory }) => {
      const claimed = skillOf({
        status: 'active',
        evidence: ['all good'],
        digest: 'f'.repeat(64),
        history: [{ at: 1, by: 'me', from: null, to: 'active', reason: '' }],
        replacedBy: 'other',
        origin: 'tool',
      });
      const stored = await memory.store({ ...claimed, proof: proofOf(claimed) }, { by: 'ann' });
      expect(stored).toMatchObject({ status: 'candidate', evidence: [], digest: skillOf().digest });
      expect(stored).not.toHaveProperty('proof');
      expect(stored).not.toHaveProperty('replacedBy');
      expect(stored.history).toEqual([{ at: NEW_YEAR, by: 'ann', from: null, to: 'candidate', reason: '' }]);
      const unsigned = await memory.store(skillOf({ name: 'b', origin: 'import' }));
      expect(unsigned.history?.[0]).toMatchObject({ by: 'import' });
    });

    it('moves a version and records who, when and why', async ({ memory }) => {
      const stored = await memory.store(skillOf());
      const proof = proofOf(stored);
      const [verified] = await memory.move([moveOf(stored, 'verified', { proof, evidence: ['twice'], reason: 'tests passed' })]);
      expect(verified).toMatchObject({
        status: 'verified',
        statusReason: 'tests passed',
        evidence: ['twice'],
        proof,
        updatedAt: NEW_YEAR + 9,
      });
      expect(verified?.history?.at(-1)).toEqual({ at: NEW_YEAR + 9, by: 'ann', from: 'candidate', to: 'verified', reason: 'tests passed' });
      expect(await memory.get(ALL, 'sum_even')).toEqual(verified);
    });

    it('absorbs a merged skill, whose name, cues and tasks then lead to it', async ({ memory }) => {
      const one = await storeAt(memory, skillOf({ status: 'active' }));
      const merged = await storeAt(
        memory,
        skillOf({ status: 'active', name: 'walrus', ...other('w'), cues: ['tusks in the sea'], fingerprints: ['w1'] }),
      );
      const merge = [
        moveOf(one, 'active', { absorbs: merged, reason: 'took over' }),
        moveOf(merged, 'deprecated', { replacedBy: one.name }),
      ];
      await memory.move(merge);
      const [again] = await memory.move(merge);
      expect(again?.history).toHaveLength((one.history ?? []).length + 1);
      expect(again).toMatchObject({
        status: 'active',
        members: [{ skill: { name: 'walrus', version: 1 }, fingerprints: ['w1'], fixed: {} }],
      });
      expect((await memory.byFingerprint(ALL, 'w1')).map(({ name }) => name)).toEqual(['sum_even']);
      expect(await memory.store(skillOf(other('e')))).toMatchObject({ version: 2, members: [{ skill: { name: 'walrus' } }] });
      for (const text of ['walrus', 'tusks in the sea'])
        expect((await memory.search(ALL, { text, limit: 1 })).map(({ skill }) => skill.name)).toEqual(['sum_even']);
    });

    it('refuses a move of another digest, status or version', async ({ memory }) => {
      const stored = await memory.store(skillOf());
      const proof = proofOf(stored);
      const codeOf = (move: SkillMove) => memory.move([move]).catch(errorCode);
      expect(await codeOf(moveOf({ ...stored, digest: 'f'.repeat(64) }, 'rejected'))).toBe('ABORTED');
      expect(await codeOf(moveOf(stored, 'deprecated'))).toBe('ABORTED');
      expect(await codeOf(moveOf(stored, 'verified', { proof, from: ['rejected'] }))).toBe('ABORTED');
      expect(await codeOf(moveOf({ ...stored, version: 2 }, 'rejected'))).toBe('NOT_FOUND');
      expect(await codeOf(moveOf({ ...stored, scope: { ...SCOPE, tenant: 'beta' } }, 'rejected'))).toBe('NOT_FOUND');
      expect(await codeOf(moveOf({ ...stored, scope: { ...SCOPE, agent: 'tester' } }, 'rejected'))).toBe('NOT_FOUND');
      expect(await memory.get(ALL, 'sum_even')).toEqual(stored);
    });

    it('requires a proof for the content of a verified or active skill', async ({ memory }) => {
      const stored = await memory.store(skillOf());
      const wrong = [undefined, null, proofOf(stored, { digest: 'f'.repeat(64) }), proofOf(skillOf(other('b')))];
      for (const proof of wrong)
        await expect(memory.move([moveOf(stored, 'verified', proof === undefined ? {} : { proof })])).rejects.toMatchObject({
          code: 'FAILED_PRECONDITION',
        });
      const [, active] = await memory.move([moveOf(stored, 'verified', { proof: proofOf(stored) }), moveOf(stored, 'active')]);
      const [retired] = await memory.move([moveOf(active!, 'deprecated', { proof: null })]);
      expect(retired).not.toHaveProperty('proof');
      await expect(memory.move([moveOf(retired!, 'active', { at: NEW_YEAR + 10 })])).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    });

    it('makes all moves of a call or none', async ({ memory }) => {
      const first = await storeAt(memory, skillOf({ status: 'active' }));
      const second = await storeAt(memory, skillOf({ ...other('b'), status: 'pending_review' }));
      await expect(memory.move([moveOf(second, 'active'), moveOf(first, 'rejected')])).rejects.toMatchObject({ code: 'ABORTED' });
      expect((await memory.versions(OWNER, 'sum_even')).map(({ status }) => status)).toEqual(['pending_review', 'active']);
      const moves = [moveOf(second, 'active'), moveOf(first, 'deprecated')];
      const moved = await memory.move(moves);
      expect(moved.map(({ version, status }) => [version, status])).toEqual([
        [2, 'active'],
        [1, 'deprecated'],
      ]);
      expect(await memory.move(moves)).toEqual(moved);
      const elsewhere = moveOf({ ...first, scope: { ...SCOPE, tenant: 'beta' } }, 'archived');
      await expect(memory.move([moveOf(first, 'archived'), elsewhere])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });

    it('ignores a repeated move that was undone since', async ({ memory }) => {
      const active = await storeAt(memory, skillOf({ status: 'active' }));
      const away = moveOf(active, 'deprecated');
      await memory.move([away]);
      const [back] = await memory.move([moveOf(active, 'active', { at: NEW_YEAR + 10 })]);
      expect(await memory.move([away])).toEqual([back]);
    });

    it('moves and counts offers for the user in the key', async ({ memory }) => {
      const [ofAnn, nobodys] = await Promise.all(['ann', null].map((user) => memory.store(skillOf({ scope: { ...SCOPE, user } }))));
      await memory.move([moveOf(ofAnn!, 'rejected')]);
      expect(await memory.versions({ ...OWNER, user: null }, 'sum_even')).toEqual([nobodys]);
      const { user: _user, ...unnamed } = keyOf(nobodys!);
      await memory.countOffers([keyOf(ofAnn!), keyOf(ofAnn!), unnamed]);
      const offered = async (user: string | null) => (await memory.versions({ ...OWNER, user }, 'sum_even'))[0]?.usage?.offered;
      expect([await offered('ann'), await offered(null)]).toEqual([1, 1]);
      expect(await memory.move([moveOf(ofAnn!, 'archived'), { ...moveOf(nobodys!, 'archived'), key: unnamed }])).toMatchObject([
        { scope: { user: 'ann' }, status: 'archived' },
        { scope: { user: null }, status: 'archived' },
      ]);
      const ofBob = { ...nobodys!, scope: { ...SCOPE, user: 'bob' } };
      expect(await memory.move([moveOf(ofBob, 'archived')]).catch(errorCode)).toBe('NOT_FOUND');
    });

    it('returns the versions of one owner, newest first', async ({ memory }) => {
      await storeAt(memory, skillOf({ status: 'active' }));
      await memory.store(skillOf({ ...other('b'), scope: { ...SCOPE, user: 'ann' } }));
      await memory.store(skillOf({ ...other('c'), scope: { ...SCOPE, agent: 'tester' } }));
      const versions = await memory.versions(OWNER, 'sum_even');
      expect(versions.map(({ version, scope }) => [version, scope.user])).toEqual([
        [1, null],
        [1, 'ann'],
      ]);
      expect((await memory.versions(OWNER, 'sum_even', 'active')).map(({ scope }) => scope.user)).toEqual([null]);
      for (const user of [null, 'ann'])
        expect((await memory.versions({ ...OWNER, user }, 'sum_even')).map(({ scope }) => scope.user)).toEqual([user]);
      expect(await memory.versions({ ...OWNER, user: 'bob' }, 'sum_even')).toEqual([]);
      expect(await memory.versions({ ...OWNER, tenant: 'beta' }, 'sum_even')).toEqual([]);
    });

    it('returns all versions of a tenant or an owner, by status', async ({ memory }) => {
      for (const name of ['a', 'b']) await memory.store(skillOf({ name }));
      await memory.store(skillOf({ name: 'a', code: 'def a(): ...', scope: { ...SCOPE, agent: '@tenant' } }));
      const names = async (...args: Parameters<typeof memory.every>) => {
        const found: string[] = [];
        for await (const { name, scope } of memory.every(...args)) found.push(`${name} ${scope.agent}`);
        return found;
      };
      const { tenant, agent } = SCOPE;
      expect(await names({ tenant, agent: null })).toEqual(['a @tenant', `a ${agent}`, `b ${agent}`]);
      expect(await names({ tenant, agent }, ['candidate'])).toEqual([`a ${agent}`, `b ${agent}`]);
      expect(await names({ tenant, agent }, ['active'])).toEqual([]);
      expect(await names({ tenant, agent: null }, undefined, 'b')).toEqual([`b ${agent}`]);
    });

    it("returns each user's versions in order, and to a user the visible ones", async ({ memory }) => {
      for (const user of ['bob', null, 'ann']) await memory.store(skillOf({ name: 'a', scope: { ...SCOPE, user } }));
      await memory.store(skillOf({ name: 'a', code: 'def a(): ...', scope: { ...SCOPE, user: 'ann' } }));
      await memory.store(skillOf({ name: 'a_b', scope: { ...SCOPE, user: 'ann' } }));
      const seen = async (user?: string) => {
        const { tenant, agent } = SCOPE;
        const found = await Array.fromAsync(memory.every({ tenant, agent, ...(user === undefined ? {} : { user }) }));
        return found.map(({ name, version, scope }) => `${name}@${version} ${scope.user ?? 'nobody'}`);
      };
      expect(await seen()).toEqual(['a@1 nobody', 'a@1 ann', 'a@2 ann', 'a@1 bob', 'a_b@1 ann']);
      expect(await seen('ann')).toEqual(['a@1 nobody', 'a@1 ann', 'a@2 ann', 'a_b@1 ann']);
    });

    it('refuses an edit of an old version and names the author of the newest', async ({ memory }) => {
      await memory.store(skillOf(), { by: 'ann' });
      await memory.store(skillOf(other('b')), { by: 'bob', baseVersion: 1 });
      const stale = memory.store(skillOf({ ...other('c') }), { by: 'ann', baseVersion: 1 });
      await expect(stale).rejects.toMatchObject({
        code: 'ABORTED',
        message: expect.stringMatching(/the newest is version 2 by bob/) as string,
      });
      await expect(memory.store(skillOf(other('c')), { baseVersion: 7 })).rejects.toMatchObject({ code: 'ABORTED' });
      expect(await memory.store(skillOf(other('b')), { baseVersion: 1 })).toMatchObject({ version: 2 });
      const raced = await Promise.allSettled(['d', 'e', 'f'].map((letter) => memory.store(skillOf(other(letter)), { baseVersion: 2 })));
      expect(raced.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    });

    it('counts names towards the limit', async ({ memory }) => {
      await storeAt(memory, skillOf({ status: 'active' }));
      await memory.store(skillOf(other('b')));
      await storeAt(memory, skillOf({ name: 'gone', status: 'archived' }));
      await storeAt(memory, skillOf({ name: 'bad', status: 'rejected' }));
      await memory.store(skillOf({ name: 'theirs', scope: { ...SCOPE, agent: 'tester' } }));
      expect(await memory.countNames(OWNER)).toBe(1);
      await memory.store(skillOf({ name: 'next' }));
      expect(await memory.countNames(OWNER)).toBe(2);
      for (const user of ['ann', 'bob']) await memory.store(skillOf({ name: `of_${user}`, scope: { ...SCOPE, user } }));
      const counts = [null, 'ann', 'bob', 'cy'].map((user) => memory.countNames({ ...OWNER, user }));
      expect(await Promise.all(counts)).toEqual([2, 1, 1, 0]);
      expect(await memory.countNames(OWNER)).toBe(4);
    });

    it('stores the latest load and counts it as an offer, not as a use', async ({ memory }) => {
      const skill = await storeAt(memory, skillOf({ status: 'active' }));
      const after = async (...offers: Array<{ loadedAt?: number }>) => {
        await memory.countOffers(offers.map((offer) => ({ ...keyOf(skill), ...offer })));
        return (await memory.get(ALL, 'sum_even'))?.usage;
      };
      expect(await after({})).toMatchObject({ offered: 1, used: 0, lastUsedAt: null });
      expect(await after({ loadedAt: 20 }, {}, { loadedAt: 30 })).toMatchObject({ offered: 2, used: 0, lastUsedAt: 30 });
      expect(await after({ loadedAt: 10 })).toMatchObject({ offered: 3, used: 0, lastUsedAt: 30 });
    });

    it('counts a use of a global skill once and stores no words of a tenant', async ({ memory }) => {
      const everybody = { tenant: '@global', agent: '@tenant', user: null };
      await storeAt(memory, skillOf({ status: 'active', scope: everybody }));
      const use = skillUseOf({ owner: { tenant: '@global', agent: '@tenant' }, cue: 'our merger', fingerprint: 'secret' });
      await memory.applyUse('u1', use);
      await memory.applyUse('u1', use);
      await memory.applyUse('u1', { ...use, scope: { ...SCOPE, tenant: 'beta' } });
      const after = await memory.get({ tenant: '@global', agent: null }, 'sum_even');
      expect(after).toMatchObject({ executionCount: 2, cues: skillOf().cues, fingerprints: ['f1'] });
      const ofBeta = skillUseOf({ owner: { tenant: 'beta', agent: 'coder' } });
      await expect(memory.applyUse('u2', ofBeta)).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
      await storeAt(memory, skillOf({ status: 'active', scope: { ...SCOPE, agent: '@tenant' } }));
      await memory.applyUse('u3', skillUseOf({ owner: { tenant: 'acme', agent: '@tenant' } }));
      expect(await memory.get({ tenant: 'acme', agent: '@tenant' }, 'sum_even')).toMatchObject({ executionCount: 1 });
    });
  });
}
