import { describe, expect, it } from 'vitest';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { SKILL_CUES_MAX } from '../src/retrieval/reinforce.js';
import { type MakeMemory, start } from './memory-conformance-start.js';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from './memory-records.js';
import { storeAt } from './skill-lives.js';

const ALL = { tenant: 'acme', agent: null };
const ACTIVE = skillOf({ status: 'active' });
const ANN = { ...SCOPE, user: 'ann' };
const failed = (n: number) => skillUseOf({ success: false, at: NEW_YEAR + n, failure: { input: `{"n":${n}}`, error: `ValueError: ${n}` } });

const gave = (inputDigest: string, outputDigest?: string) => skillUseOf(outputDigest ? { inputDigest, outputDigest } : { inputDigest });

/** What a memory keeps of how its skills are used. */
export function skillUsageConformance(make: MakeMemory<ProceduralMemory>): void {
  const used = async (...uses: ReadonlyArray<ReturnType<typeof skillUseOf>>) => {
    const memory = await start(make);
    await storeAt(memory, ACTIVE);
    for (const [at, use] of uses.entries()) for (const _ of [1, 2]) await memory.recordUse(`u${at}`, use);
    return memory.get(ALL, 'sum_even');
  };

  describe('as a memory of how skills are used', () => {
    it('counts uses, successes and those that fell back, each once', async () => {
      const skill = await used(
        skillUseOf(),
        skillUseOf({ success: false, fellBack: true }),
        skillUseOf({ success: false, at: NEW_YEAR + 9 }),
      );
      expect(skill).toMatchObject({ executionCount: 1, usage: { used: 3, fellBack: 1, lastUsedAt: NEW_YEAR + 9, offered: 0 } });
      expect(skill?.successRate).toBeCloseTo(0.81);
    });

    it('keeps the last ten failures with their input, newest first', async () => {
      const skill = await used(...Array.from({ length: 12 }, (_, n) => failed(n)));
      expect(skill?.usage?.failures).toHaveLength(10);
      expect(skill?.usage?.failures[0]).toEqual({ at: NEW_YEAR + 11, input: '{"n":11}', error: 'ValueError: 11' });
    });

    it('flags the same input with another output, and nothing else', async () => {
      expect((await used(gave('a', 'x'), gave('b', 'y'), gave('a', 'x'), gave('a'), skillUseOf()))?.usage).toMatchObject({
        nondeterministic: false,
        outputs: [expect.anything(), expect.anything()],
      });
      expect((await used(gave('a', 'x'), gave('a', 'y'), gave('a', 'x')))?.usage).toMatchObject({ nondeterministic: true });
    });

    it('keeps what a user put in out of a skill that is shared', async () => {
      const secret = { scope: ANN, inputDigest: 'debts', outputDigest: 'high' };
      const failure = { input: '{"debts": 7}', error: "ValueError: invalid literal: 'my debts', line 3" };
      const skill = await used(skillUseOf(secret), skillUseOf({ scope: ANN, success: false, failure }));
      expect(JSON.stringify(skill?.usage)).not.toMatch(/debts|high/);
      expect(skill?.usage?.failures).toEqual([{ at: NEW_YEAR + 1, input: '', error: 'ValueError' }]);
      const other = await used(skillUseOf(secret), skillUseOf({ ...secret, outputDigest: 'low' }));
      expect(other?.usage?.nondeterministic).toBe(true);
    });

    it('counts a use once and learns from its success', async () => {
      const memory = await start(make);
      await storeAt(memory, { ...ACTIVE, successRate: 1 });
      await memory.recordUse('u1', skillUseOf({ success: false, cue: 'failed here', fingerprint: 'f9' }));
      await memory.recordUse('u1', skillUseOf({ success: false }));
      expect(await memory.get(ALL, 'sum_even')).toMatchObject({ executionCount: 0, cues: ACTIVE.cues, fingerprints: ['f1'] });
      await memory.recordUse('u2', skillUseOf());
      await memory.recordUse('u2', skillUseOf());
      const after = await memory.get(ALL, 'sum_even');
      expect(after).toMatchObject({
        executionCount: 1,
        cues: [...ACTIVE.cues, 'Total of the even entries'],
        fingerprints: ['f1', 'f2'],
        updatedAt: NEW_YEAR + 1,
      });
      expect(after?.successRate).toBeCloseTo(0.91);
      expect((await memory.byFingerprint(ALL, 'f2')).map(({ name }) => name)).toEqual(['sum_even']);
      expect(await memory.byFingerprint(ALL, 'f9')).toEqual([]);
      expect((await memory.search(ALL, { text: 'Total of the even entries', limit: 1 }))[0]?.similarity).toBeGreaterThan(0.95);
    });

    it('keeps what a user asked for out of a skill that is shared', async () => {
      const memory = await start(make);
      await storeAt(memory, ACTIVE);
      const secret = { scope: { ...SCOPE, user: 'ann' }, cue: 'the sum of my even debts', fingerprint: 'debts' };
      await memory.recordUse('u1', skillUseOf(secret));
      expect(await memory.get(ALL, 'sum_even')).toMatchObject({ executionCount: 1, cues: ACTIVE.cues, fingerprints: ACTIVE.fingerprints });
      const own = await storeAt(memory, { ...ACTIVE, scope: secret.scope });
      await memory.recordUse('u2', skillUseOf({ ...secret, owner: { tenant: 'acme', agent: 'coder', user: 'ann' } }));
      expect((await memory.byFingerprint({ ...ALL, user: 'ann' }, 'debts')).map(({ scope }) => scope)).toEqual([own.scope]);
      const ofBob = skillUseOf({ ...secret, owner: { tenant: 'acme', agent: 'coder', user: 'bob' } });
      await expect(memory.recordUse('u3', ofBob)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    });

    it('keeps a bounded number of cues and every fingerprint', async () => {
      const memory = await start(make);
      await storeAt(memory, ACTIVE);
      for (let i = 0; i < SKILL_CUES_MAX + 5; i += 1)
        await memory.recordUse(`u${i}`, skillUseOf({ cue: `case ${i}`, fingerprint: `p${i}` }));
      const after = await memory.get(ALL, 'sum_even');
      expect(after?.cues).toHaveLength(SKILL_CUES_MAX);
      expect(after?.fingerprints).toHaveLength(SKILL_CUES_MAX + 6);
    });

    it('refuses to count a use of a skill that is not there', async () => {
      const memory = await start(make);
      await expect(memory.recordUse('u1', skillUseOf())).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await storeAt(memory, ACTIVE);
      await expect(memory.recordUse('u1', skillUseOf({ scope: { ...SCOPE, tenant: 'beta' } }))).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
      await memory.recordUse('u1', skillUseOf());
      expect(await memory.get(ALL, 'sum_even')).toMatchObject({ executionCount: 1 });
    });

    it('puts what succeeds first for a fingerprint', async () => {
      const memory = await start(make);
      await storeAt(memory, { ...ACTIVE, name: 'a', successRate: 0.5 });
      await storeAt(memory, { ...ACTIVE, name: 'b', successRate: 0.9 });
      expect((await memory.byFingerprint(ALL, 'f1')).map(({ name }) => name)).toEqual(['b', 'a']);
    });
  });
}
