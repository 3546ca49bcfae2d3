import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';
import { beforeEach, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { exportOf, linesOf } from '../../test/upkeep-samples.js';
import type { Memory } from '../memory.js';
import { memoryOver } from '../open-memory.js';

const ACME = { tenant: 'acme' };
const ALL = { ...ACME, agent: null };
const BOB = { ...SCOPE, user: 'bob' };

let memory: Memory;
beforeEach(() => {
  memory = opened();
});

const opened = () => memoryOver(modelStore(), { embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR } });

const say = (scope: typeof SCOPE, texts: readonly string[], { first = null as number | null, at = NEW_YEAR, to = memory } = {}) => {
  const messages = texts.map((text) => ({ role: 'user', name: '', text, at: null }));
  return to.conversations.add({ scope, name: 'chat 1', title: '', messages, writeId: `${at} ${texts.join()}`, first, at });
};
const textsOf = async (of: Memory, scope = SCOPE) => {
  const [conversation] = await of.conversations.list({ ...ALL, user: scope.user }, { limit: 1 });
  return (await of.conversations.turns(ALL, conversation?.id ?? '', { limit: 99 })).map(({ text }) => text);
};

it('erases the conversations of a user, also what was said long ago', async () => {
  await say(BOB, ['The boat is at the shed.']);
  await say(SCOPE, ['Whales sing.']);
  const removed = await memory.upkeep.erase({ ...ACME, user: 'bob' }, { before: NEW_YEAR + 1 });
  expect(removed).toMatchObject({ 'memory.semantic.conversation': 1, 'memory.semantic.turn': 1 });
  expect(await textsOf(memory)).toEqual(['Whales sing.']);
  await say(BOB, ['Told after the erasure.'], { at: NEW_YEAR + 2 });
  expect(await memory.upkeep.findErased({ ...ACME, user: 'bob' }, NEW_YEAR + 1)).toEqual({});
  const { layers } = await memory.upkeep.stats('acme');
  expect(layers.filter(({ kind }) => kind === 'conversation' || kind === 'turn').map(({ records }) => records)).toEqual([2, 2]);
});

it('is exported and imported whole, and continues in its new place', async () => {
  await say(SCOPE, ['one', 'two']);
  const elsewhere = opened();
  const lines = (await exportOf(memory)).map((line) => line.replaceAll('"acme"', '"globex"'));
  expect(await elsewhere.upkeep.importLines('acme', linesOf(lines), {})).toMatchObject({ refused: [] });
  expect(await say(SCOPE, ['two', 'three'], { first: 1, to: elsewhere })).toMatchObject({ outcome: 'appended' });
  expect(await textsOf(elsewhere)).toEqual(['one', 'two', 'three']);
});

it('is never archived', async () => {
  await say(SCOPE, ['one', 'two']);
  expect(await memory.upkeep.archive(ACME, { scoreMax: 1, olderThanDays: 0 }, { dryRun: false })).toMatchObject({ archived: 0 });
});

it('cuts the texts of neighbours, and shows a turn whole', async () => {
  const long = 'boat '.repeat(1_000).trim();
  await say(SCOPE, [long, 'shed', long]);
  const [hit] = await memory.semantic.search(ALL, { text: 'shed', limit: 1 });
  expect([hit?.before, hit?.after].map((near) => near?.map(({ text }) => text.length))).toEqual([[300], [300]]);
  const found = await memory.semantic.search(ALL, { text: 'boat', limit: 3 });
  expect(found.map(({ text }) => text).toSorted()).toEqual([long, long, 'shed']);
});
