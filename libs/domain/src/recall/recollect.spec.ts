import type { Turn } from '@etude/contracts/conversation';
import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { expect, it } from 'vitest';
import { hitOf, SCOPE, skillOf, skillUseOf } from '../../test/memory-records.js';
import type { ShowCounters } from '../ports/memory.js';
import { afterOffers, afterUse } from '../skills/life/usage.js';
import { keyOf } from '../skills/life/skill-life.js';
import { recollect, type RecollectInput } from './recollect.js';
import { shownText } from './turn-text.js';

const hit = (id: string, layer: MemoryLayer, kind: string, sources: string[] = []) =>
  hitOf({ id, layer, kind, sources, text: `text of ${kind} ${id}` });
const answers = <T>(found: readonly T[]) => ({ search: () => Promise.resolve(found) });
const fails = (code: 'MEMORY_UNAVAILABLE' | 'TENANT_MISSING') => ({ search: () => Promise.reject(new EtudeError(code, 'no')) });
const skills = (sources: string[]) => answers([{ skill: skillOf({ sources }), similarity: 0.9, score: 0.9 }]);
const asked: RecollectInput = {
  scope: { tenant: 'acme', agent: null },
  cue: 'cue',
  counts: { semantic: 2, episodic: 2, procedural: 2 },
  tokensMax: 2_000,
};
const none = answers([]);
/** Recollects from the given layers. All other layers are empty. */
const recollected = (layers: Partial<Parameters<typeof recollect>[1]>, more: Partial<RecollectInput> = {}) =>
  recollect({ ...asked, ...more }, { semantic: none, episodic: none, procedural: none, ...layers });
const found = (id: string, layer: MemoryLayer, similarity: number, bm25: number) => ({
  ...hit(id, layer, 'fact'),
  similarity,
  explanation: { bm25 },
});
const side = (right: number) => ({ n: 40, right, tokens: 0, tokensSquared: 0 });
/** Counters of 40 rollouts that were shown each item, and 40 without it. The arguments say how many first attempts were right. */
const lift = (shown: (id: string) => number, withheld: number): ShowCounters => ({
  counters: async (_tenant, items) => items.map(({ id }) => ({ shown: side(shown(id)), withheld: side(withheld) })),
});
const EPISODE = hit('tabcdefgh-r1', 'episodic', 'episode', ['tabcdefgh-r1']);

it('shows an episode in place of its summary and its reflection', async () => {
  const semantic = answers([hit('tabcdefgh-r1', 'semantic', 'summary'), hit('tabcdefgh-r1', 'semantic', 'reflection')]);
  const { hits } = await recollected({ semantic, episodic: answers([EPISODE]) });
  expect(hits.map(({ kind }) => kind)).toEqual(['episode']);
});

it.each([['tasks/tabcdefgh'], ['tabcdefgh-r1']])('shows a skill in place of its source episode %s', async (source) => {
  const episodic = answers([EPISODE, hit('tzzzzzzzz-r1', 'episodic', 'episode')]);
  const { hits } = await recollected({ episodic, procedural: skills([source]) });
  expect(hits.map(({ id }) => id)).toEqual(['sum_even@1', 'tzzzzzzzz-r1']);
});

it('keeps an episode if its skill exceeds the budget', async () => {
  const skill = skillOf({ sources: ['tasks/tabcdefgh'], code: 'x'.repeat(900), description: '' });
  const procedural = answers([{ skill, similarity: 1, score: 1 }]);
  const { hits, tokens } = await recollected({ episodic: answers([EPISODE]), procedural }, { tokensMax: 100 });
  expect(hits.map(({ kind }) => kind)).toEqual(['episode']);
  expect(tokens).toBe(Math.ceil(EPISODE.text.length / 4));
});

it('shows a skill without its code where only its words fit', async () => {
  const skill = skillOf({ code: `def f():\n${'    pass\n'.repeat(90)}` });
  const procedural = answers([{ skill, similarity: 1, score: 1 }]);
  const shown = async (tokensMax: number) => (await recollected({ procedural }, { tokensMax })).hits.map(({ text }) => text);
  expect(await shown(800)).toEqual([`${skill.description}\n\n\`\`\`python\n${skill.code.trimEnd()}\n\`\`\``]);
  expect(await shown(100)).toEqual([skill.description]);
});

it('puts facts first, and shows one experience for each lesson', async () => {
  const told = (id: string, text: string) => ({ ...hit(id, 'episodic', 'episode'), text });
  const episodic = answers([
    told('e1', 'Read the input as whole numbers, then add all of them.'),
    told('e2', 'Read the input as whole numbers, then add all of them up.'),
    told('e3', 'Sort the names first.'),
  ]);
  const semantic = answers([hit('c1', 'semantic', 'chunk'), hit('f1', 'semantic', 'fact')]);
  const { hits } = await recollected({ semantic, episodic }, { counts: { episodic: 3, semantic: 2 } });
  expect(hits.map(({ id }) => id)).toEqual(['f1', 'e1', 'c1', 'e3']);
});

it('returns a partial result only if the caller accepts one', async () => {
  const deps = { semantic: fails('MEMORY_UNAVAILABLE'), episodic: answers([EPISODE]), procedural: answers([]) };
  await expect(recollect(asked, deps)).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  expect(await recollect({ ...asked, partial: true }, deps)).toMatchObject({ hits: [{ id: EPISODE.id }], missing: ['semantic'] });
  const broken = { ...deps, semantic: fails('TENANT_MISSING') };
  await expect(recollect({ ...asked, partial: true }, broken)).rejects.toMatchObject({ code: 'TENANT_MISSING' });
});

it('leaves out dissimilar hits, unless they share rare words with the cue', async () => {
  const semantic = answers([found('near', 'semantic', 0.3, 0), found('far', 'semantic', 0.29, 5), found('worded', 'semantic', 0.1, 12)]);
  const episodic = answers([found('noise', 'episodic', 0.13, 2)]);
  const procedural = answers([{ skill: skillOf(), similarity: 0.23, score: 1, explanation: { bm25: 3 } }]);
  const deps = { semantic, episodic, procedural };
  const { hits } = await recollect(asked, deps);
  expect(hits.map(({ id }) => id)).toEqual(['near', 'worded']);
  expect(hits[0]).not.toHaveProperty('explanation');
  expect((await recollect({ ...asked, similarityMin: 0.5 }, deps)).hits.map(({ id }) => id)).toEqual(['worded']);
  const all = await recollect({ ...asked, counts: { semantic: 3, episodic: 2, procedural: 2 }, similarityMin: 0 }, deps);
  expect(all.hits).toHaveLength(5);
});

const turnOf = (index: number, text: string): Turn => {
  const said = { role: 'user', name: 'Ann', text, at: Date.UTC(2026, 4, 3) };
  return { ...said, id: `c1.${index}`, scope: SCOPE, conversation: 'c1', index, previous: '', createdAt: 0 };
};
const hitFor = (turn: Turn, before: Turn[]) => ({ ...hit(turn.id, 'semantic', 'turn'), text: turn.text, turn, before, after: [] });

it('counts the turns around a turn, and shows each of them once', async () => {
  const [ask, answer, far] = [turnOf(0, 'Where is it?'), turnOf(1, 'At the shed.'), turnOf(9, 'At the shed.')];
  const semantic = answers([hitFor(answer, [ask]), hitFor(ask, []), hitFor(far, [])]);
  const { hits, tokens } = await recollected({ semantic });
  expect(hits.map(({ id }) => id)).toEqual(['c1.1', 'c1.9']);
  const transcript = 'Ann (3 May 2026): Where is it?\nAnn (3 May 2026): At the shed.';
  expect(hits[0] && shownText(hits[0])).toBe(transcript);
  expect(tokens).toBe(Math.ceil(transcript.length / 4) + Math.ceil('Ann (3 May 2026): At the shed.'.length / 4));
});

const offered = (times: number) => Array.from({ length: times }).reduce<Skill>((skill) => afterOffers(skill, [keyOf(skill)]), skillOf());
it.each([
  ['as long as it may still be of use', offered(8), undefined, 1],
  ['no more after many offers in vain', offered(9), undefined, 0],
  ['again after a use', afterUse(offered(20), skillUseOf()), undefined, 1],
  ['where it was measured to help', offered(9), lift(() => 30, 10), 1],
  ['no more where it was measured to harm', offered(9), lift(() => 10, 30), 0],
])('offers a skill %s', async (_when, skill, counters, count) => {
  const procedural = answers([{ skill, similarity: 0.9, score: 0.9 }]);
  expect((await recollected({ procedural, ...(counters && { counters }) })).hits).toHaveLength(count);
});

it('puts first what was measured to help, of memories that are equally near', async () => {
  const semantic = answers([hit('a', 'semantic', 'fact'), hit('b', 'semantic', 'fact')]);
  const counters = lift((id) => (id === 'b' ? 30 : 10), 20);
  const { hits } = await recollected({ semantic, counters });
  expect(hits.map(({ id }) => id)).toEqual(['b', 'a']);
});
