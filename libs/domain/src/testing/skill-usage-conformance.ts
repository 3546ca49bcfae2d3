import { describe, expect, it } from 'vitest';
import type { ProceduralMemory } from '../ports/memory.js';
import { type MakeMemory, start } from './memory-conformance-start.js';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from './memory-records.js';
import { storeAt } from './skill-lives.js';

const ALL = { tenant: 'acme', agent: null };
const ANN = { ...SCOPE, user: 'ann' };
const failed = (n: number) => skillUseOf({ success: false, at: NEW_YEAR + n, failure: { input: `{"n":${n}}`, error: `ValueError: ${n}` } });

const gave = (inputDigest: string, outputDigest?: string) => skillUseOf(outputDigest ? { inputDigest, outputDigest } : { inputDigest });

/** What a memory keeps of how its skills are used. */
export function skillUsageConformance(make: MakeMemory<ProceduralMemory>): void {
  const used = async (...uses: ReadonlyArray<ReturnType<typeof skillUseOf>>) => {
    const memory = await start(make);
    await storeAt(memory, skillOf({ status: 'active' }));
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

    it('remembers the outputs of the last 64 inputs', async () => {
      const uses = Array.from({ length: 66 }, (_, n) => skillUseOf({ inputDigest: `in ${n}`, outputDigest: 'out' }));
      expect((await used(...uses))?.usage?.outputs).toHaveLength(64);
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
  });
}
