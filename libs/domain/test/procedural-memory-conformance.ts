import type { Skill } from '@etude/contracts/memory';
import { describe, expect } from 'vitest';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { SKILL_CUES_MAX } from '../src/skills/life/usage.js';
import { keyOf, newSkill } from '../src/skills/life/skill-life.js';
import type { MakeMemory } from './memory-conformance-start.js';
import { ALL, requireRefusals, SCOPES_WITHOUT_TENANT, start, withMemory } from './memory-conformance-start.js';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from './memory-records.js';
import { skillRegistryConformance } from './skill-registry-conformance.js';
import { storeAt } from './skill-lives.js';
import { skillCallersConformance, skillStoringConformance } from './skill-storing-conformance.js';

const code = (letter: string) => `def total(xs): return '${letter}'`;
const ACTIVE = skillOf({ status: 'active' });
/** The stored form of a skill. */
const storedOf = (changes: Partial<Skill> = {}) => newSkill(skillOf(changes), changes.version ?? 1);

/** The conformance suite for every ProceduralMemory. */
export function proceduralMemoryConformance(make: MakeMemory<ProceduralMemory>): void {
  const it = withMemory(make);
  skillRegistryConformance(make);
  skillCallersConformance(make);
  skillStoringConformance(make);
  skillUsageConformance(make);

  describe('as a ProceduralMemory', () => {
    it('numbers versions and keeps one per digest', async ({ memory }) => {
      expect(await memory.store(skillOf({ version: 7 }))).toEqual(storedOf());
      expect(await memory.store(skillOf({ description: 'other words' }))).toEqual(storedOf());
      const second = await memory.store(skillOf({ code: code('b') }));
      expect(second.version).toBe(2);
      expect(await memory.store(skillOf({ digest: 'f'.repeat(64) }))).toMatchObject({ version: 1, digest: skillOf().digest });
      expect(await memory.get(ALL, 'sum_even')).toEqual(second);
      expect(await memory.get(ALL, 'sum_even', 1)).toEqual(storedOf());
      expect(await memory.get(ALL, 'sum_even', 3)).toBeNull();
      expect(await memory.get(ALL, 'sum_odd')).toBeNull();
    });

    it('carries marks over to later versions, unless a reviewer stores them', async ({ memory }) => {
      const untrusted = ['imported'];
      const lines = "def total(xs):\n    return '#'";
      const edit = (more: string, options = {}) => memory.store(skillOf({ code: `${lines}${more}` }), options);
      await memory.store(skillOf({ code: lines, untrusted }));
      expect(await edit('\n\n# mine', { baseVersion: 1 })).toMatchObject({ version: 2, untrusted });
      expect(await edit('\n\nONE = 1', { isReviewed: true })).not.toHaveProperty('untrusted');
      expect(await edit('\n\nTWO = 2')).toMatchObject({ version: 4, untrusted });
      const ofAnn = await memory.store(skillOf({ code: code('c'), scope: { ...SCOPE, user: 'ann' } }));
      expect(ofAnn).not.toHaveProperty('untrusted');
    });

    it('carries marks of a rejected version over only to its edits and copies', async ({ memory }) => {
      const untrusted = ['imported'];
      await storeAt(memory, skillOf({ code: code('a'), untrusted, status: 'rejected' }));
      expect(await memory.store(skillOf({ code: code('b') }), { isReviewed: true })).not.toHaveProperty('untrusted');
      expect(await memory.store(skillOf({ code: code('c') }))).not.toHaveProperty('untrusted');
      expect(await memory.store(skillOf({ code: `# mine\n${code('a')}` }))).toMatchObject({ version: 4, untrusted });
    });

    it("returns the reader's own version first, then nobody's, then any user's", async ({ memory }) => {
      const ofAnn = await memory.store(skillOf({ scope: { ...SCOPE, user: 'ann' } }));
      const users = async (user?: string | null, version?: number) =>
        (await memory.get({ ...ALL, ...(user === undefined ? {} : { user }) }, 'sum_even', version))?.scope.user;
      expect([await users(), await users('ann'), await users('bob')]).toEqual(['ann', 'ann', undefined]);
      await memory.store(skillOf());
      await memory.store(skillOf({ code: code('b') }));
      expect([await users(), await users('ann'), await users('bob')]).toEqual([null, 'ann', null]);
      expect([await users('ann', 1), await users('ann', 2)]).toEqual(['ann', null]);
      expect(await memory.get({ ...ALL, user: 'ann' }, 'sum_even')).toEqual(ofAnn);
    });

    it('keeps equal skills of two users, and of nobody, apart', async ({ memory }) => {
      const users = ['ann', 'bob', null];
      for (const user of users) await storeAt(memory, skillTold(user));
      for (const user of users) {
        const own = await memory.store(skillTold(user));
        expect(own).toMatchObject({ version: 1, status: 'active', scope: { user } });
        expect(await memory.get({ ...ALL, user: user ?? '@nobody' }, 'sum_even', 1)).toEqual(own);
      }
      for (const user of ['ann', 'bob']) {
        const shown = await memory.search({ ...ALL, user }, { text: 'even numbers', limit: 9 });
        expect(new Set(shown.map(({ skill }) => skill.scope.user))).toEqual(new Set([user, null]));
      }
    });

    it('finds a skill only while it is active', async ({ memory }) => {
      const stored = await memory.store(skillOf());
      const found = async () => [
        (await memory.search(ALL, { text: 'even numbers', limit: 5 })).length,
        (await memory.byFingerprint(ALL, 'f1')).length,
      ];
      expect(await found()).toEqual([0, 0]);
      await storeAt(memory, ACTIVE);
      expect(await found()).toEqual([1, 1]);
      await memory.move([{ key: keyOf(stored), to: 'deprecated', by: 'ann', reason: '', at: NEW_YEAR + 1 }]);
      expect(await found()).toEqual([0, 0]);
    });

    it('finds a skill once, by its closest name, description or cue', async ({ memory }) => {
      await storeAt(memory, { ...ACTIVE, cues: ['Add up all even values', 'even numbers in a column', 'even entries'] });
      await storeAt(memory, { ...ACTIVE, name: 'walrus', description: 'Feeds a walrus with numbers.', cues: [] });
      const found = await memory.search(ALL, { text: 'Add up all even values', limit: 5, explain: true });
      expect(found.map(({ skill }) => skill.name)[0]).toBe('sum_even');
      expect(found.filter(({ skill }) => skill.name === 'sum_even')).toHaveLength(1);
      expect(found[0]?.similarity).toBeGreaterThan(0.95);
      expect(found[0]?.explanation?.score).toBe(found[0]?.score);
      expect((await memory.search(ALL, { text: 'walrus', limit: 5 })).map(({ skill }) => skill.name)).toEqual(['walrus']);
      expect(await memory.search(ALL, { text: 'zebra', limit: 5, similarityMin: 0.2 })).toEqual([]);
    });

    it('finds many skills behind one with many cues', async ({ memory }) => {
      await storeAt(memory, { ...ACTIVE, cues: Array.from({ length: SKILL_CUES_MAX }, (_, i) => `sum of even numbers case${i}`) });
      for (const name of ['b', 'c', 'd']) await storeAt(memory, { ...ACTIVE, name, cues: [], description: `even numbers and ${name}oats` });
      expect(await memory.search(ALL, { text: 'sum of even numbers', limit: 4 })).toHaveLength(4);
    });

    it('refuses to work without a tenant', async ({ memory }) => {
      for (const scope of SCOPES_WITHOUT_TENANT) {
        const [every, search] = [Array.fromAsync(memory.every(scope)), memory.search(scope, { text: 'a', limit: 1 })];
        await requireRefusals(memory.get(scope, 'a'), every, search, memory.byFingerprint(scope, 'f1'));
      }
      for (const tenant of ['', '  ', undefined as unknown as string]) {
        const key = { ...keyOf(skillOf()), tenant };
        const move = memory.move([{ key, to: 'active', by: 'ann', reason: '', at: 0 }]);
        await requireRefusals(memory.versions(key, 'a'), memory.dependents(key), memory.countOffers([key]), move);
      }
      const nobody = { ...SCOPE, tenant: '' };
      await requireRefusals(memory.store(skillOf({ scope: nobody })), memory.applyUse('u', skillUseOf({ scope: nobody })));
    });
  });
}

const skillTold = (user: string | null) => skillOf({ scope: { ...SCOPE, user }, description: `as ${user} tells it`, status: 'active' });

const ANN = { ...SCOPE, user: 'ann' };
const failed = (n: number) => skillUseOf({ success: false, at: NEW_YEAR + n, failure: { input: `{"n":${n}}`, error: `ValueError: ${n}` } });

const gave = (inputDigest: string, outputDigest?: string) => skillUseOf(outputDigest ? { inputDigest, outputDigest } : { inputDigest });

/** The conformance suite for uses of skills. */
function skillUsageConformance(make: MakeMemory<ProceduralMemory>): void {
  const it = withMemory(make);
  const used = async (...uses: ReadonlyArray<ReturnType<typeof skillUseOf>>) => {
    const memory = await start(make);
    await storeAt(memory, ACTIVE);
    for (const [at, use] of uses.entries()) for (const _ of [1, 2]) await memory.applyUse(`u${at}`, use);
    return memory.get(ALL, 'sum_even');
  };

  describe('as a memory of how skills are used', () => {
    it('keeps the last ten failures with their input, newest first', async () => {
      const skill = await used(...Array.from({ length: 12 }, (_, n) => failed(n)));
      expect(skill?.usage?.failures).toHaveLength(10);
      expect(skill?.usage?.failures[0]).toEqual({ at: NEW_YEAR + 11, input: '{"n":11}', error: 'ValueError: 11' });
    });

    it('flags only another output for the same input', async () => {
      expect((await used(gave('a', 'x'), gave('b', 'y'), gave('a', 'x'), gave('a'), skillUseOf()))?.usage).toMatchObject({
        nondeterministic: false,
        outputs: [expect.anything(), expect.anything()],
      });
      expect((await used(gave('a', 'x'), gave('a', 'y'), gave('a', 'x')))?.usage).toMatchObject({ nondeterministic: true });
    });

    it('stores no input of a user in a shared skill', async () => {
      const secret = { scope: ANN, inputDigest: 'debts', outputDigest: 'high' };
      const failure = { input: '{"debts": 7}', error: "ValueError: invalid literal: 'my debts', line 3" };
      const skill = await used(skillUseOf(secret), skillUseOf({ scope: ANN, success: false, failure }));
      expect(JSON.stringify(skill?.usage)).not.toMatch(/debts|high/);
      expect(skill?.usage?.failures).toEqual([{ at: NEW_YEAR + 1, input: '', error: 'ValueError' }]);
      const other = await used(skillUseOf(secret), skillUseOf({ ...secret, outputDigest: 'low' }));
      expect(other?.usage?.nondeterministic).toBe(true);
    });

    it('counts a use once and learns from its success', async ({ memory }) => {
      await storeAt(memory, { ...ACTIVE, successRate: 1 });
      await memory.applyUse('u1', skillUseOf({ success: false, fellBack: true, cue: 'failed here', fingerprint: 'f9' }));
      await memory.applyUse('u1', skillUseOf({ success: false }));
      expect(await memory.get(ALL, 'sum_even')).toMatchObject({ executionCount: 0, cues: ACTIVE.cues, fingerprints: ['f1'] });
      await memory.applyUse('u2', skillUseOf());
      await memory.applyUse('u2', skillUseOf());
      const after = await memory.get(ALL, 'sum_even');
      expect(after).toMatchObject({
        executionCount: 1,
        cues: [...ACTIVE.cues, 'Total of the even entries'],
        fingerprints: ['f1', 'f2'],
        updatedAt: NEW_YEAR + 1,
        usage: { used: 2, fellBack: 1, lastUsedAt: NEW_YEAR + 1 },
      });
      expect(after?.successRate).toBeCloseTo(0.91);
      expect((await memory.byFingerprint(ALL, 'f2')).map(({ name }) => name)).toEqual(['sum_even']);
      expect(await memory.byFingerprint(ALL, 'f9')).toEqual([]);
      expect((await memory.search(ALL, { text: 'Total of the even entries', limit: 1 }))[0]?.similarity).toBeGreaterThan(0.95);
    });

    it('stores no prompt of a user in a shared skill', async ({ memory }) => {
      await storeAt(memory, ACTIVE);
      const secret = { scope: { ...SCOPE, user: 'ann' }, cue: 'the sum of my even debts', fingerprint: 'debts' };
      await memory.applyUse('u1', skillUseOf(secret));
      expect(await memory.get(ALL, 'sum_even')).toMatchObject({ executionCount: 1, cues: ACTIVE.cues, fingerprints: ACTIVE.fingerprints });
      const own = await storeAt(memory, { ...ACTIVE, scope: secret.scope });
      await memory.applyUse('u2', skillUseOf({ ...secret, owner: { tenant: 'acme', agent: 'coder', user: 'ann' } }));
      expect((await memory.byFingerprint({ ...ALL, user: 'ann' }, 'debts')).map(({ scope }) => scope)).toEqual([own.scope]);
      const ofBob = skillUseOf({ ...secret, owner: { tenant: 'acme', agent: 'coder', user: 'bob' } });
      await expect(memory.applyUse('u3', ofBob)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    });

    it('keeps a bounded number of cues and every fingerprint', async ({ memory }) => {
      await storeAt(memory, ACTIVE);
      for (let i = 0; i < SKILL_CUES_MAX + 5; i += 1)
        await memory.applyUse(`u${i}`, skillUseOf({ cue: `case ${i}`, fingerprint: `p${i}` }));
      const after = await memory.get(ALL, 'sum_even');
      expect(after?.cues).toHaveLength(SKILL_CUES_MAX);
      expect(after?.fingerprints).toHaveLength(SKILL_CUES_MAX + 6);
    });

    it('refuses to count a use of an unknown skill', async ({ memory }) => {
      await expect(memory.applyUse('u1', skillUseOf())).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await storeAt(memory, ACTIVE);
      await expect(memory.applyUse('u1', skillUseOf({ scope: { ...SCOPE, tenant: 'beta' } }))).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
      await memory.applyUse('u1', skillUseOf());
      expect(await memory.get(ALL, 'sum_even')).toMatchObject({ executionCount: 1 });
    });

    it('puts what succeeds first for a fingerprint', async ({ memory }) => {
      await storeAt(memory, { ...ACTIVE, name: 'a', successRate: 0.5 });
      await storeAt(memory, { ...ACTIVE, name: 'b', successRate: 0.9 });
      expect((await memory.byFingerprint(ALL, 'f1')).map(({ name }) => name)).toEqual(['b', 'a']);
    });
  });
}
