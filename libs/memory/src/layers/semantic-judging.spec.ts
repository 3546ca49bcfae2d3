import type { Scope } from '@etude/contracts/memory';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { NEW_YEAR, SCOPE } from '@etude/domain/testing/memory-records';
import { factOf } from '@etude/domain/testing/semantic-memory-conformance';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { semanticLayer } from './semantic-layer.js';

const ALL = { tenant: 'acme', agent: null };
const DAY_MS = 86_400_000;
/** Alike, without a subject. */
const LUNCHES = ['noon at home', 'noon in town', 'noon by the lake', 'noon with Bob', 'noon with Tom', 'noon outside'].map(
  (place) => `Ann usually has her lunch at ${place}`,
);

const ofEve = (text: string) => text.replaceAll('Ann', 'Eve');

function layerWith(answers: ConstructorParameters<typeof FakeChatModel>[0]) {
  const model = new FakeChatModel(answers);
  const logged: unknown[] = [];
  const layer = semanticLayer(
    { store: modelStore(), embedder: new LexicalEmbedder(), clock: { now: Date.now } },
    { judge: model, log: (message, details) => logged.push([message, details]) },
  );
  const tell = async (texts: readonly string[], ...owners: readonly Scope[]) => {
    for (const [day, text] of texts.entries()) {
      for (const scope of owners.length === 0 ? [SCOPE] : owners)
        await layer.store(text, factOf({ scope, text, episodes: [], createdAt: NEW_YEAR + day * DAY_MS }));
    }
    await layer.close();
  };
  return { layer, model, logged, tell };
}

function pairsIn(prompt: string): ReadonlyArray<{ older: string; newer: string }> {
  return JSON.parse(/<pairs>(.*)<\/pairs>/.exec(prompt)?.[1] ?? '[]') as ReadonlyArray<{ older: string; newer: string }>;
}

describe('a judge of undecided facts', () => {
  it('gets many pairs in one call per five facts, and its verdict supersedes a fact', async () => {
    const { layer, model, tell } = layerWith(['{"contradict": [0]}']);
    await tell(LUNCHES);
    const [asked] = model.requests;
    const pairs = pairsIn(asked?.messages.at(-1)?.content ?? '');
    expect(pairs.length).toBeGreaterThan(3);
    const texts = (await layer.list(ALL, 10)).map(({ text }) => text);
    expect(texts).toHaveLength(LUNCHES.length - 1);
    expect(texts).not.toContain(pairs[0]?.older);
    expect(model.requests).toHaveLength(1);
  });

  it('uses at most a fifth of a call and 500 tokens per fact', async () => {
    const { model, tell } = layerWith(Array.from({ length: 20 }, () => '{"contradict": []}'));
    const texts = Array.from(
      { length: 30 },
      (_, i) => `${LUNCHES[i % LUNCHES.length]} ${'walnut pepper granite velvet cotton'.split(' ')[Math.floor(i / 6)]}`,
    );
    await tell(texts);
    const prompts = model.requests.map(({ messages }) => messages.map(({ content }) => content).join(''));
    const promptTokens = prompts.reduce((sum, { length }) => sum + Math.ceil(length / 4), 0);
    expect(prompts.length).toBeGreaterThan(1);
    expect(prompts.length).toBeLessThanOrEqual(texts.length * 0.2);
    expect(promptTokens).toBeLessThanOrEqual(texts.length * 500);
  });

  it.each(['Well, all of them.', '{"contradict": [99]}', new Error('gone')])(
    'changes nothing after the answer %s, and logs it',
    async (answer) => {
      const { layer, model, logged, tell } = layerWith([answer]);
      await tell(LUNCHES.slice(0, 5));
      expect(await layer.list(ALL, 10)).toHaveLength(5);
      expect(model.requests).toHaveLength(1);
      expect(logged).toHaveLength(1);
    },
  );

  it.each([
    ['tenants', { ...SCOPE, tenant: 'evil' }],
    ['users', { ...SCOPE, user: 'eve' }],
    ['agents', { ...SCOPE, agent: 'tester' }],
  ])('never sees facts of two %s in one prompt, and budgets each alone', async (_, other) => {
    const { layer, model, tell } = layerWith(Array.from({ length: 9 }, () => '{"contradict": []}'));
    for (const [at, text] of LUNCHES.entries()) {
      await layer.store(`a${at}`, factOf({ scope: SCOPE, text, episodes: [] }));
      if (at < 4) await layer.store(`e${at}`, factOf({ scope: other, text: ofEve(text), episodes: [] }));
    }
    await layer.close();
    expect(model.requests).toHaveLength(1);
    expect(JSON.stringify(model.requests)).not.toContain('Eve');
    await tell(LUNCHES.slice(4).map(ofEve), other);
    const prompts = model.requests.map(({ messages }) => messages.at(-1)?.content ?? '');
    expect(prompts.map((prompt) => [prompt.includes('Ann'), prompt.includes('Eve')])).toEqual([
      [true, false],
      [false, true],
    ]);
  });
});
