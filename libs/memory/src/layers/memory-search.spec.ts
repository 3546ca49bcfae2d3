import { EtudeError } from '@etude/contracts/errors';
import type { ChatModel } from '@etude/domain/ports/model';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { episodeOf, NEW_YEAR, SCOPE, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { factOf } from '@etude/domain/testing/semantic-memory-conformance';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { episodicLayer } from './episodic-layer.js';
import { sharedEmbedding } from './records.js';
import { rankCandidates } from './memory-search.js';
import { proceduralLayer } from './procedural-layer.js';
import { semanticLayer } from './semantic-layer.js';

const ALL = { tenant: 'acme', agent: null };
const scopeOf = (user: string) => ({ tenant: 'acme', agent: 'coder', user });

function layers(chat?: (content: string) => string | Error) {
  const chatModel: ChatModel | undefined = chat && {
    async chat({ messages }) {
      const text = chat(messages.at(-1)?.content ?? '');
      if (text instanceof Error) throw text;
      const usage = { model: 'm', scripted: true, inputTokens: 1, outputTokens: 1, costUsd: 0 };
      return { text, finishReason: 'stop', ...usage };
    },
  };
  const deps = {
    store: modelStore(),
    embedder: new LexicalEmbedder(),
    clock: { now: () => NEW_YEAR },
    ...(chatModel ? { chatModel } : {}),
  };
  return { deps, episodic: episodicLayer(deps), semantic: semanticLayer(deps), procedural: proceduralLayer(deps) };
}

const candidateOf = (kind: 'fact' | 'turn', key: string, cosine: number, bm25: number) => ({
  kind,
  key,
  createdAt: 0,
  worth: 1,
  cosine,
  bm25,
});

it('weighs the words of a turn more than those of other records', () => {
  const profile = { model: 'm', dimension: 3, denseWeight: 0.8, calibrate: (cosine: number) => cosine };
  const order = (kind: 'fact' | 'turn') => {
    const dense = [candidateOf(kind, 'near', 0.5, 0), candidateOf(kind, 'worded', 0.2, 40)];
    return rankCandidates({ dense, words: dense.slice(1) }, profile, 0).map(({ candidate }) => candidate.key);
  };
  expect([order('fact'), order('turn')]).toEqual([
    ['near', 'worded'],
    ['worded', 'near'],
  ]);
});

describe('a search of a layer', () => {
  it('returns the user of a hit, and whether the scripted model wrote it', async () => {
    const { episodic } = layers();
    const told = { context: ['even'], actions: [], outcomes: [{ scripted: true }] };
    await episodic.storeEpisode(episodeOf({ id: 'told', scope: scopeOf('ann'), experience: told }));
    await episodic.storeEpisode(episodeOf({ id: 'written', scripted: true }));
    const hits = await episodic.search(ALL, { text: 'even numbers', limit: 5, kinds: ['episode'] });
    const shown = new Map(hits.map(({ id, user, scripted }) => [id, { user, scripted }]));
    expect(shown).toEqual(
      new Map([
        ['told', { user: 'ann', scripted: undefined }],
        ['written', { user: undefined, scripted: true }],
      ]),
    );
  });

  it('shows one attempt of each rollout, the best', async () => {
    const { episodic } = layers();
    for (const attempt of [1, 2, 3, 4])
      for (const rolloutId of ['taaaaaaaa-r1', 'tbbbbbbbb-r1'])
        await episodic.storeTransition(transitionOf({ id: `${rolloutId}.a${attempt}`, rolloutId, attempt }));
    const hits = await episodic.search(ALL, { text: 'even numbers', limit: 5 });
    expect(hits.map(({ id }) => id.replace(/\.a\d$/, '')).toSorted()).toEqual(['taaaaaaaa-r1', 'tbbbbbbbb-r1']);
  });

  it('shows with an experience how it ended and what was learned', async () => {
    const { episodic } = layers();
    const experience = { context: ['fog'], actions: ['slow down'], outcomes: [{ type: 'passed', minutes: 5 }] };
    await episodic.storeEpisode(episodeOf({ id: 'told', experience, success: true, reflection: 'The horn helps.' }));
    const [hit] = await episodic.search(ALL, { text: 'fog', limit: 1 });
    expect(hit?.text).toMatch(/Outcome: success\n\{"type":"passed","minutes":5\}\nReflection: The horn helps\.$/);
  });

  it('leaves out strangers, unless they have every word of the query', async () => {
    const { semantic } = layers();
    const texts = ['The ferry to the island leaves at noon', 'Bees sleep at night', '明天下午三点开会', 'Launch 🚀 on the 9th'];
    for (const text of texts) await semantic.store(text, factOf({ scope: SCOPE, text, episodes: [] }));
    const found = async (text: string) => (await semantic.search(ALL, { text, limit: 5, relevantOnly: true })).map((hit) => hit.text);
    expect(await found('quarterly tax return for the cinema')).toEqual([]);
    expect(await found('noon')).toEqual([texts[0]]);
    expect(await found('下午开会')).toEqual([texts[2]]);
    expect(await found('🚀')).toEqual([texts[3]]);
  });

  it('finds a text in a script without spaces, and emoji, by its own words among the first five', async () => {
    const { semantic } = layers();
    const who = ['张伟', '田中さんは', 'สมชาย', '김민수는', '🐢'];
    const what = ['喜欢喝绿茶', '毎朝公園を走る', 'ชอบกินข้าวผัด', '기타를연주한다', '🏃🌳'];
    const texts = who.flatMap((a) => what.map((b) => `${a}${b}`));
    for (const text of texts) await semantic.store(text, factOf({ scope: SCOPE, text, episodes: [] }));
    const missed: string[] = [];
    for (const text of texts) if (!(await semantic.search(ALL, { text, limit: 5 })).some((hit) => hit.text === text)) missed.push(text);
    expect(missed).toEqual([]);
  });

  it('tells the sum of each score, and what puts a hit before the next', async () => {
    const { semantic } = layers();
    for (const text of ['Even numbers are halves', 'Numbers that are odd'])
      await semantic.store(text, factOf({ scope: SCOPE, text, episodes: [] }));
    const hits = await semantic.search(ALL, { text: 'even numbers', limit: 2, explain: true });
    expect(hits[0]?.why).toEqual([
      expect.stringMatching(
        /^0\.\d+ = \(\d(\.\d+)? × similarity \S+ \+ \S+ × words \S+\) × \(1 − 0\.15 × \(1 − worth \S+\) − 0\.15 × \(1 − recency \S+\)\)$/,
      ),
      expect.stringMatching(/^Before the next by 0\.\d+: \+0\.\d+ (meaning|words)/),
    ]);
    expect(hits[1]?.why).toHaveLength(1);
  });

  it('explains a score with the documented names', async () => {
    const { episodic } = layers();
    await episodic.storeTransition(transitionOf());
    const [hit] = await episodic.search(ALL, { text: 'even numbers', limit: 1, explain: true });
    const names = ['similarity', 'cosine', 'bm25', 'denseRank', 'wordsRank', 'fused', 'recency', 'worth', 'score'];
    expect(Object.keys(hit?.explanation ?? {}).toSorted()).toEqual(names.toSorted());
  });

  it('refuses vectors of a wrong length, with NaN, and missing vectors', async () => {
    const { deps } = layers();
    for (const vector of [new Float32Array(3), new Float32Array(deps.embedder.profile.dimension).fill(Number.NaN), undefined]) {
      const embed = (texts: readonly string[]) => Promise.resolve(texts.map(() => vector as Float32Array));
      const embedder = { profile: deps.embedder.profile, embed };
      const episodic = episodicLayer({ ...deps, embedder });
      await expect(episodic.search(ALL, { text: 'even', limit: 1 })).rejects.toMatchObject({ code: 'EMBEDDING_LENGTH_WRONG' });
      await expect(episodic.storeTransition(transitionOf())).rejects.toMatchObject({ code: 'EMBEDDING_LENGTH_WRONG' });
    }
    expect(await deps.store.count({ tenant: 'acme' }, 'episodic', {})).toBe(0);
  });
});

const threeEpisodes = async (chat?: (content: string) => string | Error) => {
  const { episodic } = layers(chat);
  for (const id of ['e1', 'e2', 'e3']) await episodic.storeEpisode(episodeOf({ id, summary: `Summed "even" numbers ${id}.` }));
  return (explain = true) => episodic.search(ALL, { text: 'even numbers', limit: 3, rerank: true, explain });
};

describe('a reranked search', () => {
  it('follows the order of the model, and keeps hits that the model left out', async () => {
    const search = await threeEpisodes((content) => {
      const { results } = JSON.parse(content) as { results: Array<{ id: number; text: string }> };
      return `Sure: {"order": [${results.find(({ text }) => text.includes('e1'))?.id}, 77, 1.0, -1]}`;
    });
    const hits = await search();
    expect(hits[0]?.id).toBe('e1');
    expect(hits.map(({ id }) => id).toSorted()).toEqual(['e1', 'e2', 'e3']);
    expect(hits.map(({ explanation }) => explanation?.rerank)).toEqual([1, 2, 3]);
  });

  it.each([
    ['throws', () => new Error('down')],
    ['answers no JSON', () => 'the second one'],
    ['answers another shape', () => '{"order": "2"}'],
    ['is missing', undefined],
  ])('keeps its order and reports it if the model %s', async (_, chat) => {
    const search = await threeEpisodes(chat);
    const hits = await search(false);
    expect(hits.map(({ id }) => id)).toEqual(['e3', 'e2', 'e1'].toSorted());
    expect(hits.every(({ explanation }) => explanation?.rerankFailed === 1)).toBe(true);
  });
});

describe('a procedure in words', () => {
  it('starts with a success rate of one half and keeps its counts in a new version', async () => {
    const { procedural } = layers();
    const scope = { tenant: 'acme', agent: 'coder', user: null };
    const first = await procedural.storeProcedure('w1', scope, 'refund', 'Look up the order, then refund it.');
    expect(first).toMatchObject({ kind: 'procedure', successRate: 0.5, executionCount: 0, status: 'active', code: '' });
    const use = {
      kind: 'skill_use',
      scope,
      name: 'refund',
      version: 1,
      success: true,
      fingerprint: 'f',
      cue: 'Refund order 7',
      at: NEW_YEAR,
    } as const;
    await procedural.applyUse('u1', use);
    expect(await procedural.storeProcedure('w1', scope, 'refund', 'Look up the order, then refund it.')).toMatchObject({
      executionCount: 1,
    });
    const second = await procedural.storeProcedure('w2', scope, 'refund', 'Ask for the receipt first.');
    expect(second).toMatchObject({ version: 2, executionCount: 1, description: 'Ask for the receipt first.' });
    expect(second.successRate).toBeCloseTo(0.55);
    expect(await procedural.storeProcedure('w1', scope, 'refund', 'Look up the order, then refund it.')).toEqual(second);
    const found = async (text: string) => (await procedural.search(ALL, { text, limit: 1, worthMin: 0.5 })).map(({ skill }) => skill.name);
    expect(await found('receipt')).toEqual(['refund']);
    expect(await procedural.search(ALL, { text: 'receipt', limit: 1, worthMin: 0.6 })).toEqual([]);
  });
});

describe('episodes', () => {
  it('are found by the skills used in them, newest first', async () => {
    const { episodic } = layers();
    for (const [i, skillsUsed] of [['a@1'], ['a@1', 'b@1'], []].entries()) {
      await episodic.storeEpisode(episodeOf({ id: `e${i}`, skillsUsed, createdAt: NEW_YEAR + i }));
    }
    expect((await episodic.bySkill(ALL, 'a@1', 5)).map(({ id }) => id)).toEqual(['e1', 'e0']);
    expect((await episodic.bySkill(ALL, 'a@1', 1)).map(({ id }) => id)).toEqual(['e1']);
    expect((await episodic.bySkill(ALL, 'b', 5)).map(({ id }) => id)).toEqual(['e1']);
    expect(await episodic.bySkill(ALL, 'a@2', 5)).toEqual([]);
  });
});

it.each(['MEMORY_FULL', 'MEMORY_UNAVAILABLE'] as const)(
  'loses an offer of a skill if the store answers %s, and fails no reader',
  async (code) => {
    const { deps, procedural } = layers();
    const skill = await procedural.store(skillOf());
    const write = () => Promise.reject(new EtudeError(code, 'nothing can be written'));
    const failing = proceduralLayer({ ...deps, store: { ...deps.store, write } });
    await expect(failing.countOffers([{ ...keyOf(skill), loadedAt: NEW_YEAR }])).resolves.toBeUndefined();
    expect((await failing.get(SCOPE, skill.name))?.usage?.offered ?? 0).toBe(0);
  },
);

it('embeds a text once for concurrent callers, and again after a failure', async () => {
  const inner = new LexicalEmbedder();
  const asked: string[] = [];
  const embedder = sharedEmbedding({
    profile: inner.profile,
    async embed(texts) {
      asked.push(...texts);
      await Promise.resolve();
      if (texts.includes('broken')) throw new Error('down');
      return inner.embed(texts);
    },
  });
  const [a, b, c] = await Promise.all([embedder.embed(['one']), embedder.embed(['one']), embedder.embed(['two'])]);
  expect(asked).toEqual(['one', 'two']);
  expect(a).toEqual(b);
  expect(a).not.toEqual(c);
  for (const _ of [1, 2]) await expect(embedder.embed(['broken'])).rejects.toThrow('down');
  expect(asked).toHaveLength(4);
});
