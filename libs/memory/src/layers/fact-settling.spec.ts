import type { Scope } from '@etude/contracts/memory';
import type { PairVerdict } from '@etude/domain/facts/fact-prompts';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { type FakeAnswer, FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { ALL } from '@etude/domain/testing/memory-conformance-start';
import { NEW_YEAR, SCOPE, storedFactOf as factOf } from '@etude/domain/testing/memory-records';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { withinBudget } from '../../test/within-budget.js';
import { semanticLayer } from './semantic-layer.js';

const DAY_MS = 86_400_000;
const OLD = 'The deploy window of the shop is on Tuesday evening';
const NEW = 'The deploy window of the shop is on Thursday evening now';
const AGAIN = 'The deploy window of the shop is on Thursday evening, still';

type Decide = (older: string, newer: string) => PairVerdict['verdict'];

/** A judge that answers as `decide` says, or with the given text. */
function judgeOf(decide: Decide | string): FakeChatModel {
  const answer: FakeAnswer = ({ messages }) => {
    const read = (tag: string): unknown => JSON.parse(new RegExp(`<${tag}>(.*)</${tag}>`).exec(messages.at(-1)?.content ?? '')?.[1] ?? '');
    if (typeof decide === 'string') return decide;
    const notes = read('notes') as string[];
    const pairs = (read('pairs') as Array<[number, number]>).map(([older, newer]) => {
      const verdict = decide(notes[older] ?? '', notes[newer] ?? '');
      return { verdict, reason: `it is ${verdict}` };
    });
    return { text: JSON.stringify({ pairs }), model: 'oracle', scripted: false };
  };
  return new FakeChatModel(Array<FakeAnswer>(99).fill(answer));
}

function world(decide: Decide | string, given: Parameters<typeof withinBudget>[1] = {}) {
  const store = modelStore();
  const woken: string[] = [];
  const layer = semanticLayer(
    { store, embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR } },
    { onUnsettled: async (tenant) => void woken.push(tenant) },
  );
  const model = judgeOf(decide);
  const prompts = () => model.requests.map(({ messages }) => messages.map(({ content }) => content).join('\n'));
  const settling = withinBudget(model, given);
  const settle = () => layer.settle('acme', settling);
  const tell = async (texts: readonly string[], scope: Scope = SCOPE) => {
    const ids: string[] = [];
    for (const [day, text] of texts.entries()) {
      const told = factOf({ scope, text, episodes: [], createdAt: NEW_YEAR + day * DAY_MS });
      ids.push((await layer.store(`${scope.agent}-${scope.user}-${text}`, told)).fact.id);
    }
    return ids;
  };
  const current = async () => (await layer.list(ALL, 50)).map(({ text }) => text);
  const found = async (text: string) => (await layer.search(ALL, { text, limit: 5 })).map((hit) => hit.text);
  return { layer, store, settle, tell, current, found, prompts, woken };
}

describe('settling facts', () => {
  it('stores every text at once, and asks for a comparison only with near facts', async () => {
    const { tell, current, woken, layer } = world(() => 'differs');
    await tell([OLD, 'Bees sleep at night']);
    expect(woken).toEqual([]);
    await tell([NEW]);
    expect(woken).toEqual(['acme']);
    expect(await layer.unsettled('acme')).toBe(1);
    expect((await current()).toSorted()).toEqual(['Bees sleep at night', OLD, NEW].toSorted());
  });

  it('ends the older fact where the newer one replaces it, and tells why in the history', async () => {
    const { layer, tell, settle, current, found } = world(() => 'replaces');
    const [old = '', now = ''] = await tell([OLD, NEW]);
    expect(await settle()).toEqual({ modelCalls: 1, decided: { same: 0, replaces: 1, differs: 0 }, left: 0 });
    expect(await current()).toEqual([NEW]);
    expect(await found(OLD)).toEqual([NEW]);
    const history = await layer.history(ALL, old);
    expect(history.map(({ text }) => text)).toEqual([NEW, OLD]);
    expect(await layer.decisions(ALL, history)).toEqual([
      {
        newer: now,
        newerText: NEW,
        older: old,
        olderText: OLD,
        verdict: 'replaces',
        reason: 'it is replaces',
        by: 'oracle',
        decideTime: NEW_YEAR,
      },
    ]);
    expect(await layer.unsettled('acme')).toBe(0);
  });

  it('finds a fact by the words of what it replaced, until that is undone', async () => {
    const { layer, tell, settle } = world(() => 'replaces');
    const [old = '', now = ''] = await tell([OLD, NEW]);
    const best = async () => (await layer.search(ALL, { text: OLD, limit: 5 })).map(({ id, similarity }) => [id, similarity > 0.99]);
    await settle();
    expect(await best()).toEqual([[now, true]]);
    await layer.undoDecision(ALL, [old, now], 'ann');
    expect(await best()).toEqual([
      [old, true],
      [now, false],
    ]);
  });

  it('finds a new fact by the wordings that it came with', async () => {
    const { layer, found } = world(() => 'same');
    const wordings = [{ id: 'f1', text: NEW }];
    await layer.store('w1', factOf({ id: 'f1', scope: SCOPE, text: 'zq', wordings, episodes: [], createdAt: NEW_YEAR }));
    expect(await found(NEW)).toEqual(['zq']);
  });

  it('keeps the newest words of a repeat, finds it by the others, and takes them as the same fact from then on', async () => {
    const { layer, tell, settle, current, found } = world(() => 'same');
    await tell([NEW, AGAIN]);
    await settle();
    expect(await current()).toEqual([AGAIN]);
    expect(await found(NEW)).toEqual([AGAIN]);
    const again = await layer.store(
      'once more',
      factOf({ scope: SCOPE, text: ` ${NEW} `, episodes: [], createdAt: NEW_YEAR + 9 * DAY_MS }),
    );
    expect(again).toMatchObject({ outcome: 'reinforced', fact: { text: AGAIN, wordings: [{ text: NEW }] } });
  });

  it.each([
    ['same', [NEW, OLD]],
    ['replaces', [NEW, OLD]],
  ] as const)('undoes "%s" by one call, and never decides it again', async (verdict, both) => {
    const { layer, tell, settle, current, prompts } = world(() => verdict);
    const [old = '', now = ''] = await tell([OLD, NEW]);
    await settle();
    expect(await layer.undoDecision(ALL, [old, now], 'ann')).toMatchObject({ newer: { id: now }, older: { id: old } });
    expect(await current()).toEqual(both);
    expect(await layer.get(ALL, now)).toMatchObject({ support: 1, episodes: [] });
    await settle();
    expect(await current()).toEqual(both);
    expect(prompts()).toHaveLength(1);
    expect(await layer.decisions(ALL, await layer.history(ALL, now))).toMatchObject([{ verdict: 'differs', by: 'ann' }]);
  });

  it('compares two facts again after "differs" was undone', async () => {
    const { layer, tell, settle, prompts } = world(() => 'differs');
    const [old = '', now = ''] = await tell([OLD, NEW]);
    await settle();
    await layer.undoDecision(ALL, [old, now], 'ann');
    expect(await layer.unsettled('acme')).toBe(1);
    await settle();
    expect(prompts()).toHaveLength(2);
    expect(await layer.undoDecision(ALL, [old, 'none'], 'ann')).toBeNull();
  });

  it('ranks the newer of two unsettled facts first, whatever the query resembles', async () => {
    const { tell, found, settle } = world(() => 'differs');
    await tell([OLD, NEW]);
    expect(await found(OLD)).toEqual([NEW, OLD]);
    await settle();
    expect(await found(OLD)).toEqual([OLD, NEW]);
  });

  it('finds an older fact by its words behind at most three unsettled ones, however many may replace each other', async () => {
    const { tell, found } = world(() => 'differs');
    const told = Array.from({ length: 9 }, (_, n) => `The limit of the API is ${n + 10} requests.`);
    await tell(told);
    const [oldest = ''] = told;
    expect((await found(oldest)).indexOf(oldest)).toBe(3);
  });

  it('follows a fact that was merged meanwhile to the one that is current', async () => {
    const { tell, settle, current } = world((older) => (older === OLD ? 'replaces' : 'same'));
    await tell([OLD, NEW]);
    await settle();
    await tell([OLD, NEW, AGAIN]);
    await settle();
    expect(await current()).toEqual([AGAIN]);
  });

  it.each(['Well, all of them.', '{"pairs": []}'])('keeps both facts after the answer %s, and does not ask for ever', async (answer) => {
    const { layer, tell, settle, current, prompts } = world(answer);
    await tell([OLD, NEW, AGAIN]);
    await settle();
    expect(await current()).toHaveLength(3);
    expect(await layer.unsettled('acme')).toBe(0);
    expect(prompts()).toHaveLength(4);
  });

  it('leaves facts unsettled beyond the budget, and where the agent does not want it', async () => {
    const spent = world(() => 'replaces', { calls: 0 });
    await spent.tell([OLD, NEW]);
    expect(await spent.settle()).toMatchObject({ modelCalls: 0, left: 1 });
    const off = world(() => 'replaces', { isOn: false });
    await off.tell([OLD, NEW]);
    expect(await off.settle()).toMatchObject({ modelCalls: 0, left: 0 });
    expect([await spent.layer.unsettled('acme'), await off.layer.unsettled('acme')]).toEqual([1, 1]);
  });

  it('asks about many pairs in one call, with whole texts, each once', async () => {
    const { tell, settle, prompts } = world(() => 'differs');
    const places = 'at home,in town,by the lake,with Bob,with Tom,outside,in the office,on the train'.split(',');
    const texts = places.map((place) => `Ann usually has her lunch ${place} ${'and tells a long story '.repeat(15)}${place}`);
    await tell(texts);
    await settle();
    expect(prompts()).toHaveLength(1);
    for (const text of texts) expect(prompts().join().split(text)).toHaveLength(2);
  });

  it.each([
    ['tenants', { ...SCOPE, tenant: 'evil' }],
    ['users', { ...SCOPE, user: 'eve' }],
    ['agents', { ...SCOPE, agent: 'tester' }],
  ])('never shows the judge facts of two %s at once', async (_, other) => {
    const { layer, tell, settle, prompts } = world(() => 'same');
    await tell([OLD, NEW]);
    await tell([OLD, NEW, AGAIN].map(inCapitals), other);
    await settle();
    expect(prompts().length).toBeGreaterThan(0);
    for (const prompt of prompts()) expect(prompt.includes('deploy window')).not.toBe(prompt.includes('DEPLOY WINDOW'));
    expect((await layer.list(ALL, 9)).filter(({ scope }) => scope.user === SCOPE.user && scope.agent === SCOPE.agent)).toHaveLength(1);
  });
});

const inCapitals = (text: string) => text.toUpperCase();
