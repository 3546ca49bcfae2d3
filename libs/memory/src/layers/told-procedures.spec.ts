import type { Skill } from '@etude/contracts/memory';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { skillDigest } from '@etude/domain/skills/content-digest';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from '@etude/domain/testing/memory-records';
import { describe, expect, it } from 'vitest';
import { dyingStore } from '../../test/dying-store.js';
import { modelStore } from '../../test/model-store.js';
import type { RecordStore } from '../record-store.js';
import { proceduralLayer } from './procedural-layer.js';
import { insertsOf } from './records.js';
import { skillRecord } from './skill-records.js';

const embedder = new LexicalEmbedder();
const ALL = { tenant: 'acme', agent: null };

function imported(over: Partial<Skill>): Skill {
  const words: Partial<Skill> = { kind: 'procedure', code: '', entryPoint: null, tests: [], description: 'Throw the bow line first.' };
  const skill = skillOf({ name: 'moor', ...words, sources: ['imports/i1'], untrusted: ['it came in with imports/i1'], ...over });
  return { ...skill, digest: skillDigest(skill) };
}
const decided = (...moves: ReadonlyArray<Skill['status']>) =>
  moves.map((to, at) => ({ at, by: to === 'active' ? 'ann' : 'verification', from: moves[at - 1] ?? null, to, reason: '' }));

async function layerWith(skills: readonly Skill[] = [], store: RecordStore = modelStore()) {
  const records = skills.map((skill) => skillRecord(skill, []));
  await store.write('acme', await insertsOf(embedder, records));
  const layer = proceduralLayer({ store, embedder, clock: { now: () => NEW_YEAR } });
  let writes = 0;
  const tell = (words: string, name = 'moor', writeId = `w${(writes += 1)}`) =>
    layer.storeProcedure(writeId, SCOPE, name, words, { by: 'platform' });
  return { layer, tell, versions: (name = 'moor') => layer.versions(SCOPE, name) };
}

const livesOf = (versions: readonly Skill[]) => versions.map(({ version, status, description }) => [version, status, description]);

describe('a procedure that is told', () => {
  it('is active at once, untrusted, and has itself as its source', async () => {
    const { tell } = await layerWith();
    const stored = await tell('Throw the bow line first.');
    const source = stored.sources[0] ?? '';
    expect(source).toMatch(/^procedures\/[0-9a-f]{16}$/);
    expect(stored).toMatchObject({ status: 'active', successRate: 0.5, untrusted: [expect.stringContaining(source)] });
  });

  it('stores other words as a new version with author and time', async () => {
    const { tell, versions, layer } = await layerWith();
    await tell('Throw the bow line first.');
    await tell('Throw the stern line first.');
    const [newest, oldest] = await versions();
    expect(livesOf(await versions())).toEqual([
      [2, 'active', 'Throw the stern line first.'],
      [1, 'deprecated', 'Throw the bow line first.'],
    ]);
    expect(newest?.history).toEqual([{ at: NEW_YEAR, by: 'platform', from: null, to: 'active', reason: 'told in words' }]);
    expect(oldest?.history?.at(-1)).toMatchObject({
      from: 'active',
      to: 'deprecated',
      by: 'platform',
      reason: expect.stringContaining('version 2'),
    });
    expect((await layer.search(ALL, { text: 'bow line stern line', limit: 5 })).map(({ skill }) => skill.version)).toEqual([2]);
  });

  it('keeps the episodes and success rate of one that was learned, and a repeat adds nothing', async () => {
    const { layer, versions } = await layerWith();
    const words: Partial<Skill> = { kind: 'procedure', code: '', entryPoint: null, tests: [], description: '1. slow down' };
    const learned = skillOf({ name: 'fog', ...words, sources: ['episodes/x1'], successRate: 0.75, origin: 'consolidation' });
    for (const writeId of ['w1', 'w1', 'w2'])
      await layer.storeProcedure(writeId, SCOPE, 'fog', learned.description, { by: 'consolidation', learned });
    const [stored, ...others] = await versions('fog');
    expect(others).toEqual([]);
    expect(stored).toMatchObject({ status: 'active', successRate: 0.75, sources: ['episodes/x1'], origin: 'consolidation' });
    expect(stored?.untrusted).toEqual([expect.stringContaining('episodes/x1')]);
    expect(stored?.history).toEqual([expect.objectContaining({ by: 'consolidation', to: 'active', reason: 'learned from actions' })]);
  });

  it('starts with a success rate of one half, and keeps its counts in a new version', async () => {
    const { layer, tell } = await layerWith();
    expect(await tell('Throw the bow line first.')).toMatchObject({ successRate: 0.5, executionCount: 0 });
    await layer.applyUse('u1', skillUseOf({ name: 'moor' }));
    const second = await tell('Throw the stern line first.');
    expect(second).toMatchObject({ version: 2, executionCount: 1, successRate: expect.closeTo(0.55) });
    expect(await tell('Throw the bow line first.', 'moor', 'w1')).toEqual(second);
    const found = (worthMin: number) => layer.search(ALL, { text: 'stern', limit: 1, worthMin });
    expect([(await found(0.5)).length, (await found(0.6)).length]).toEqual([1, 0]);
  });

  it('has one active version after concurrent calls', async () => {
    const { tell, versions } = await layerWith();
    await Promise.all(Array.from({ length: 8 }, (_, i) => tell(`Words ${i}.`)));
    const all = await versions();
    expect(all).toHaveLength(8);
    expect(all.filter(({ status }) => status === 'active').map(({ version }) => version)).toEqual([8]);
  });

  it.each([
    ['the repeat', 'lost', 'Throw the stern line first.', ['active', 'deprecated']],
    ['the next telling', 'next', 'Throw no line.', ['active', 'deprecated', 'deprecated']],
    ['the next telling of the same words', 'next', 'Throw the stern line first.', ['active', 'deprecated']],
  ])('has one active version after a crash, once %s completes the write', async (_what, writeId, words, after) => {
    const { store, dieAfter } = dyingStore();
    const { tell, versions } = await layerWith([], store);
    await tell('Throw the bow line first.');
    dieAfter(1);
    await expect(tell('Throw the stern line first.', 'moor', 'lost')).rejects.toThrow('killed');
    dieAfter(Infinity);
    expect((await versions()).map(({ status }) => status)).toEqual(['active', 'active']);
    expect(await tell(words, 'moor', writeId)).toMatchObject({ status: 'active', description: words });
    expect((await versions()).map(({ status }) => status)).toEqual(after);
  });
});

describe('new words for a procedure that a person decided on', () => {
  it.each([
    ['what a reviewer approved', 'active', decided('candidate', 'pending_review', 'active')],
    ['what waits for review', 'pending_review', decided('candidate', 'pending_review')],
    ['what was archived', 'archived', decided('candidate', 'active', 'archived')],
    ['what was deprecated', 'deprecated', decided('candidate', 'active', 'deprecated')],
    ['what was rejected', 'rejected', decided('candidate', 'rejected')],
  ] as const)('leave %s unchanged, and become a candidate', async (_what, status, history) => {
    const before = imported({ status, history: [...history] });
    const { tell, versions } = await layerWith([before]);
    expect(await tell('EVIL words.')).toMatchObject({ version: 2, status: 'candidate', history: [{ by: 'platform', to: 'candidate' }] });
    expect((await versions())[1]).toEqual(before);
  });

  it.each(['archived', 'deprecated', 'rejected'] as const)('are refused if they equal words that were %s', async (status) => {
    const before = imported({ status, history: decided('candidate', 'active', status) });
    const { tell, versions } = await layerWith([before]);
    await expect(tell(before.description)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    expect(await versions()).toEqual([before]);
  });
});

it('stores the words of a marked procedure as a candidate, also under another name', async () => {
  const { tell } = await layerWith([imported({ status: 'pending_review', history: decided('candidate', 'pending_review') })]);
  expect(await tell('Throw the bow\nline first. ', 'other')).toMatchObject({
    status: 'candidate',
    untrusted: expect.arrayContaining([expect.stringContaining('marked skill of this tenant')]),
  });
});
