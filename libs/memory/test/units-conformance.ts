import type { Clock } from '@etude/domain/ports/clock';
import type { ConsolidationUnit } from '@etude/domain/ports/consolidation-units';
import { FakeMemoryOutbox } from '@etude/domain/testing/fake-memory-outbox';
import { ALL, withMemory } from '@etude/domain/testing/memory-conformance-start';
import { episodeOf, factOf, NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { moveOf, storeAt } from '@etude/domain/testing/skill-lives';
import { describe, expect } from 'vitest';
import type { Memory } from '../src/memory.js';
import type { MemoryUnderTest } from './layers-isolation.js';

export const RUN = { tenant: 'acme', run: 'c1' };
const LATER = NEW_YEAR + 86_400_000;
const LIMIT = 'how much is the limit of the API';
const CUES = [LIMIT, 'what does Ann like to drink', 'how are dates written', 'who deploys the shop'];

const learned = (text: string, more = {}) => factOf({ text, source: 'consolidation', episodes: ['e2', 'e3'], createdAt: LATER, ...more });
export const skill = skillOf({ name: 'sum_dates', scope: SCOPE, code: 'def sum_dates(xs): return sum(xs)', sources: ['tasks/tabcdefgh'] });

/** Adds two facts, reinforces one, replaces one, and proposes a skill. */
export const UNIT: ConsolidationUnit = {
  ...RUN,
  agent: SCOPE.agent,
  at: LATER,
  pages: [
    {
      id: 'p1',
      facts: [learned('The limit of the API is 8', { subject: 'limit' }), learned('Dates are written day first.')],
      read: [{ unitId: 'read.e2', scope: SCOPE }],
    },
    {
      id: 'p2',
      facts: [learned('Ann likes green tea', { episodes: ['e4'], scope: { ...SCOPE, user: 'ann' } })],
      read: [{ unitId: 'read.e4', scope: { ...SCOPE, user: 'ann' } }],
    },
  ],
  skills: [skill],
};

export async function fill(memory: Memory): Promise<void> {
  await memory.episodic.storeEpisode(episodeOf({ id: 'e1', prompt: 'Who deploys the shop?' }));
  const told = (text: string, more = {}) => memory.semantic.store(text, factOf({ text, episodes: ['e1'], createdAt: NEW_YEAR, ...more }));
  await told('The limit of the API is 5', { subject: 'limit' });
  await told('Ann likes green tea', { scope: { ...SCOPE, user: 'ann' } });
  await told('Bob deploys the shop');
}

/** Recall's answers to every cue. Scores are left out for Qdrant, where they depend on deleted words. */
export async function recalled(memory: Memory, hasScores = true): Promise<unknown> {
  const shown = CUES.map(async (context) => {
    const { facts, experiences, procedures } = await memory.recall(ALL, { context, similarityMin: 0 });
    return [...facts, ...experiences, ...procedures].map(({ score, similarity, ...hit }) =>
      hasScores ? { ...hit, score, similarity } : hit,
    );
  });
  return Promise.all(shown);
}

export async function apply(memory: Memory, outbox = new FakeMemoryOutbox(), unit = UNIT): Promise<FakeMemoryOutbox> {
  await (await memory.units.stage(unit)).commit(outbox);
  return outbox;
}

const undo = (memory: Memory) => memory.units.undo({ ...RUN, agent: null, by: 'ann' });

/** The behaviour of consolidation units over every adapter. */
export function unitsConformance(
  open: (options: { readonly clock: Clock }) => Promise<MemoryUnderTest>,
  { hasScores }: { readonly hasScores: boolean },
): void {
  const it = withMemory(async () => {
    const made = await open({ clock: { now: () => LATER } });
    await fill(made.memory);
    return made;
  });
  describe('with consolidation units', () => {
    it('stores nothing of a staged unit, and finds its facts', async ({ memory }) => {
      const before = await recalled(memory, hasScores);
      const staged = await memory.units.stage(UNIT);
      expect(staged).toMatchObject({ added: 2, reinforced: 1 });
      const found = await staged.search(ALL, { text: LIMIT, limit: 3, kinds: ['fact'] });
      expect(found[0]).toMatchObject({ text: 'The limit of the API is 8', kind: 'fact' });
      expect(found.map(({ text }) => text)).not.toContain('The limit of the API is 5');
      expect(await recalled(memory, hasScores)).toEqual(before);
      expect(await memory.units.isApplied(UNIT)).toBe(false);
    });

    it('applies a unit once, as it was staged', async ({ memory }) => {
      const staged = await memory.units.stage(UNIT);
      const query = { text: LIMIT, limit: 5 };
      const seen = (await staged.search(ALL, query)).map(({ text }) => text);
      const outbox = await apply(memory);
      expect((await memory.semantic.search(ALL, query)).map(({ text }) => text)).toEqual(seen);
      const list = await memory.semantic.list(ALL, 20);
      await apply(memory, outbox);
      await staged.commit(outbox);
      expect(await memory.semantic.list(ALL, 20)).toEqual(list);
      expect(outbox.of('skill')).toHaveLength(1);
      expect([...(await memory.semantic.appliedAmong('acme', ['p1', 'read.e2', 'read.e4']))]).toHaveLength(3);
    });

    it('recalls after undoing exactly what it recalled before', async ({ memory }) => {
      const before = await recalled(memory, hasScores);
      await apply(memory);
      const stored = await storeAt(memory.procedural, { ...skill, status: 'active' });
      expect(await recalled(memory, hasScores)).not.toEqual(before);
      const [undone] = await undo(memory);
      expect(undone).toMatchObject({ agent: SCOPE.agent, kept: [] });
      expect(undone?.undone).toHaveLength(5);
      expect(await recalled(memory, hasScores)).toEqual(before);
      expect(await memory.procedural.get(SCOPE, stored.name)).toMatchObject({
        status: 'archived',
        statusReason: 'undid the consolidation c1',
      });
      expect(await undo(memory)).toEqual([{ agent: SCOPE.agent, undone: [], kept: [] }]);
      expect((await memory.semantic.appliedAmong('acme', ['read.e2'])).size).toBe(1);
    });

    it('sets a skill aside that is still on its way', async ({ memory }) => {
      await apply(memory);
      await undo(memory);
      await memory.appliedWrites.apply('acme', 'w1', { kind: 'skill', skill });
      expect(await memory.procedural.get(SCOPE, skill.name)).toMatchObject({ status: 'archived' });
    });

    it('brings back the version that its skill replaced, and none that a person deprecated with the same words', async ({ memory }) => {
      const before = (code: string) => storeAt(memory.procedural, { ...skill, code, status: 'active' });
      const old = await before('def sum_dates(xs): return 0 + sum(xs)');
      await memory.procedural.move([moveOf(old, 'deprecated', { at: LATER, reason: 'replaced by version 3' })]);
      await before('def sum_dates(xs): return sum(xs) + 0');
      await apply(memory);
      await storeAt(memory.procedural, { ...skill, status: 'active' }, { at: LATER });
      const statuses = async () => (await memory.procedural.versions(SCOPE, skill.name)).map(({ version, status }) => [version, status]);
      expect(await statuses()).toEqual([
        [3, 'active'],
        [2, 'deprecated'],
        [1, 'deprecated'],
      ]);
      await undo(memory);
      expect(await statuses()).toEqual([
        [3, 'archived'],
        [2, 'active'],
        [1, 'deprecated'],
      ]);
    });

    for (const order of [
      ['c1', 'c2'],
      ['c2', 'c1'],
    ])
      it(`brings back the version from before two runs that are undone in the order ${order.join(', ')}`, async ({ memory }) => {
        const learn = async (run: string, code: string, at: number) => {
          const made = skillOf({ name: skill.name, scope: SCOPE, code, sources: skill.sources });
          await apply(memory, undefined, { ...UNIT, run, at, pages: [], skills: [made] });
          await storeAt(memory.procedural, { ...made, status: 'active' }, { at });
        };
        await storeAt(memory.procedural, { ...skill, code: 'def sum_dates(xs): return 0 + sum(xs)', status: 'active' });
        await learn('c1', 'def sum_dates(xs): return sum(xs) + 0', LATER);
        await learn('c2', 'def sum_dates(xs): return sum(xs) - 0', LATER + 1);
        for (const run of order) await memory.units.undo({ ...RUN, run, agent: null, by: 'ann' });
        const statuses = (await memory.procedural.versions(SCOPE, skill.name)).map(({ status }) => status);
        expect(statuses).toEqual(['archived', 'archived', 'active']);
      });

    it('keeps a skill that a person decided on', async ({ memory }) => {
      await apply(memory);
      const stored = await storeAt(memory.procedural, { ...skill, status: 'active' });
      await memory.procedural.move([moveOf(stored, 'deprecated')]);
      expect((await undo(memory))[0]?.kept).toEqual([{ name: 'skills/sum_dates@1', reason: 'ann decided on it' }]);
      expect(await memory.procedural.get(SCOPE, skill.name)).toMatchObject({ status: 'deprecated' });
    });

    it('keeps what somebody changed since, and names it', async ({ memory }) => {
      await apply(memory);
      const told = async (text: string, more = {}) =>
        memory.semantic.store(`again ${text}`, factOf({ text, episodes: [], createdAt: LATER + 1, ...more }));
      await told('Dates are written day first.');
      await told('Ann likes green tea', { scope: { ...SCOPE, user: 'ann' } });
      await told('The limit of the API is 13', { subject: 'limit' });
      const [undone] = await undo(memory);
      const reasons = undone?.kept.map(({ reason }) => reason.replace(/^facts\/\w+/, 'another fact'));
      expect(reasons?.toSorted()).toEqual([
        'another fact replaced it since',
        'another fact, which replaced it, stays',
        'it was changed since',
        'it was told again since',
      ]);
      const texts = (await memory.semantic.list(ALL, 20)).map(({ text }) => text).toSorted();
      expect(texts).toEqual(['Ann likes green tea', 'Bob deploys the shop', 'Dates are written day first.', 'The limit of the API is 13']);
    });

    it('loses its copies of a deleted fact', async ({ memory }) => {
      await apply(memory);
      const fact = (await memory.semantic.list(ALL, 20)).find(({ text }) => text.startsWith('Dates'));
      const record = { name: `facts/${fact?.id}`, agent: SCOPE.agent, user: null };
      await memory.upkeep.erase({ tenant: 'acme', record }, { before: LATER + 2 });
      const kept = await memory.store.find(ALL, 'episodic', { kinds: ['unit'] }, { order: 'key', limit: 9 });
      expect(kept.map(({ body }) => body).join('')).not.toContain('Dates');
      expect((await undo(memory))[0]?.undone).toHaveLength(4);
      expect(await memory.upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
    });

    it('erases what a unit holds of a user', async ({ memory }) => {
      await apply(memory);
      await memory.upkeep.erase({ tenant: 'acme', user: 'ann' }, { before: LATER + 2 });
      const kept = await memory.store.find(ALL, 'episodic', { kinds: ['unit'] }, { order: 'key', limit: 9 });
      expect(kept.map(({ body }) => body).join('')).not.toContain('tea');
      expect(await undo(memory)).toMatchObject([{ kept: [] }]);
    });
  });
}
