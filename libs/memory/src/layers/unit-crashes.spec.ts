import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { FakeMemoryOutbox } from '@etude/domain/testing/fake-memory-outbox';
import { factOf, SCOPE } from '@etude/domain/testing/memory-records';
import { describe, expect, it } from 'vitest';
import { dyingStore, isSurvived } from '../../test/dying-store.js';
import { withinBudget } from '../../test/within-budget.js';
import { apply, fill, recalled, RUN, UNIT } from '../../test/units-conformance.js';
import { ALL } from '@etude/domain/testing/memory-conformance-start';
import { memoryOver } from '../open-memory.js';
import type { RecordStore } from '../record-store.js';

const CHANGES_MAX = 40;
const over = (store: RecordStore) => memoryOver(store, { embedder: new LexicalEmbedder(), clock: { now: () => UNIT.at } });
const undo = (store: RecordStore) => over(store).units.undo({ ...RUN, agent: null, by: 'ann' });

async function stateOf(store: RecordStore, outbox: FakeMemoryOutbox) {
  const facts = await store.find(ALL, 'semantic', { kinds: ['fact', 'applied'] }, { order: 'key', limit: 100 });
  const units = await store.find(ALL, 'episodic', { kinds: ['unit'] }, { order: 'key', limit: 9 });
  return { facts: facts.map(({ body, shown }) => [body, shown]), units: units.map(({ body }) => body), skills: [...outbox.writes.keys()] };
}

/** Runs `work` over a filled store that crashes at change 0, then at change 1 and so on, then `check`, until `work` survives. */
async function atEachChange(
  prepare: (store: RecordStore, outbox: FakeMemoryOutbox) => Promise<unknown>,
  work: (store: RecordStore, outbox: FakeMemoryOutbox) => Promise<unknown>,
  check: (store: RecordStore, outbox: FakeMemoryOutbox) => Promise<void>,
): Promise<number> {
  for (let changes = 0; changes < CHANGES_MAX; changes += 1) {
    const [{ store, dieAfter }, outbox] = [dyingStore(), new FakeMemoryOutbox()];
    await fill(over(store));
    await prepare(store, outbox);
    dieAfter(changes);
    const survived = await isSurvived(() => work(store, outbox));
    dieAfter(Number.POSITIVE_INFINITY);
    await check(store, outbox);
    if (survived) return changes;
  }
  throw new Error('the work never survived');
}

const owner = { tenant: 'acme', agent: SCOPE.agent };
const nothing = async () => {};

describe('a consolidation unit in a store without transactions', () => {
  it('is whole or absent after a crash at any change', async () => {
    const [{ store: calm }, calmOutbox] = [dyingStore(), new FakeMemoryOutbox()];
    await fill(over(calm));
    const before = await recalled(over(calm));
    await apply(over(calm), calmOutbox);
    const after = await recalled(over(calm));
    const whole = await stateOf(calm, calmOutbox);
    const deaths = await atEachChange(
      nothing,
      (store, outbox) => apply(over(store), outbox),
      async (store, outbox) => {
        const memory = over(store);
        await memory.units.complete(owner, outbox);
        expect(await recalled(memory)).toEqual((await memory.units.isApplied(UNIT)) ? after : before);
        await apply(memory, outbox);
        expect(await stateOf(store, outbox)).toEqual(whole);
      },
    );
    expect(deaths).toBeGreaterThan(8);
  });

  it('is undone wholly after a crash at any change', async () => {
    const [{ store: calm }, calmOutbox] = [dyingStore(), new FakeMemoryOutbox()];
    await fill(over(calm));
    const before = await recalled(over(calm));
    await apply(over(calm), calmOutbox);
    await undo(calm);
    const whole = await stateOf(calm, calmOutbox);
    const deaths = await atEachChange(
      (store, outbox) => apply(over(store), outbox),
      undo,
      async (store, outbox) => {
        await over(store).units.complete(owner, outbox);
        await undo(store);
        expect(await recalled(over(store))).toEqual(before);
        expect(await stateOf(store, outbox)).toEqual(whole);
      },
    );
    expect(deaths).toBeGreaterThan(5);
  });

  it('is undone wholly if its own commit was cut off', async () => {
    await atEachChange(
      nothing,
      (store, outbox) => apply(over(store), outbox),
      async (store) => {
        const before = dyingStore().store;
        await fill(over(before));
        await undo(store);
        expect(await recalled(over(store))).toEqual(await recalled(over(before)));
      },
    );
  });

  it('is undone with the decisions of the judge about its facts', async () => {
    const { store } = dyingStore();
    const memory = over(store);
    await fill(memory);
    const before = await recalled(memory);
    const again = factOf({ text: 'Bob deploys the shop, always', source: 'consolidation', episodes: ['e2'], createdAt: UNIT.at });
    await apply(memory, new FakeMemoryOutbox(), { ...UNIT, pages: [{ id: 'p1', read: [], facts: [again] }], skills: [] });
    const judge = new FakeChatModel([JSON.stringify({ pairs: [{ verdict: 'same', reason: 'the same' }] })]);
    const report = await memory.semantic.settle('acme', withinBudget(judge));
    expect(report.decided.same).toBe(1);
    expect((await undo(store))[0]?.kept).toEqual([]);
    expect(await recalled(memory)).toEqual(before);
  });
});
