import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { FakeChatModel } from '@etude/domain/testing/fake-chat-model';
import { NEW_YEAR } from '@etude/domain/testing/memory-records';
import { factOf } from '@etude/domain/testing/semantic-memory-conformance';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { RecordSemanticLayer } from './semantic-layer.js';

const ALL = { tenant: 'acme', agent: null };
const DAY_MS = 86_400_000;
/** Alike, and beyond the rules. */
const LUNCHES = ['noon at home', 'noon in town', 'noon by the lake', 'noon with Bob', 'noon with Tom', 'noon outside'].map(
  (place) => `Ann usually has her lunch at ${place}`,
);

function layerWith(answers: ConstructorParameters<typeof FakeChatModel>[0]) {
  const model = new FakeChatModel(answers);
  const logged: unknown[] = [];
  const layer = new RecordSemanticLayer(
    { store: modelStore(), embedder: new LexicalEmbedder(), clock: { now: Date.now } },
    { judge: model, log: (message, details) => logged.push([message, details]) },
  );
  const tell = async (texts: readonly string[]) => {
    for (const [day, text] of texts.entries()) {
      await layer.store(text, factOf({ text, episodes: [], createdAt: NEW_YEAR + day * DAY_MS }));
    }
    await layer.close();
  };
  return { layer, model, logged, tell };
}

function pairsIn(prompt: string): ReadonlyArray<{ older: string; newer: string }> {
  return JSON.parse(/<pairs>(.*)<\/pairs>/.exec(prompt)?.[1] ?? '[]') as ReadonlyArray<{ older: string; newer: string }>;
}

describe('a judge of undecided facts', () => {
  it('is asked about many pairs once for five facts, and its verdict supersedes', async () => {
    const { layer, model, tell } = layerWith(['{"contradict": [0]}']);
    await tell(LUNCHES);
    const [asked] = model.requests;
    const pairs = pairsIn(asked?.messages.at(-1)?.content ?? '');
    expect(pairs.length).toBeGreaterThan(3);
    const texts = (await layer.list(ALL, 10)).map(({ text }) => text);
    expect(texts).toHaveLength(LUNCHES.length - 1);
    expect(texts).not.toContain(pairs[0]?.older);
    expect(layer.judged).toMatchObject({ calls: 1, failures: 0, superseded: 1 });
  });

  it('stays within a fifth of a call and 500 tokens for each fact', async () => {
    const { layer, tell } = layerWith(Array.from({ length: 20 }, () => '{"contradict": []}'));
    const texts = Array.from(
      { length: 30 },
      (_, i) => `${LUNCHES[i % LUNCHES.length]} ${'walnut pepper granite velvet cotton'.split(' ')[Math.floor(i / 6)]}`,
    );
    await tell(texts);
    const { calls, promptTokens } = layer.judged!;
    expect(calls).toBeGreaterThan(1);
    expect(calls).toBeLessThanOrEqual(texts.length * 0.2);
    expect(promptTokens).toBeLessThanOrEqual(texts.length * 500);
  });

  it.each(['Well, all of them.', new Error('gone')])('decides nothing by %s, and says so', async (answer) => {
    const { layer, logged, tell } = layerWith([answer]);
    await tell(LUNCHES.slice(0, 5));
    expect(await layer.list(ALL, 10)).toHaveLength(5);
    expect(layer.judged).toMatchObject({ calls: 1, failures: 1, superseded: 0 });
    expect(logged).toHaveLength(1);
  });
});
