import type { MemoryLayer } from '@etude/contracts/task';
import { expect, it } from 'vitest';
import type { MemoryHit, ReadScope, SearchQuery } from '../ports/memory.js';
import { factOf, hitOf } from '../../test/memory-records.js';
import { programOf } from '../../test/bundle-fixture.js';
import { factEntry } from '../retrieval/entries.js';
import { provenanceOf, recall } from './recall.js';

const hit = (id: string, text = id, layer: MemoryLayer = 'episodic') => hitOf({ id, text, layer });

function memory(episodic: MemoryHit[], semantic: MemoryHit[]) {
  const queries: SearchQuery[] = [];
  const layer = <T>(found: T[]) => ({ search: (_: unknown, query: SearchQuery) => (queries.push(query), Promise.resolve(found)) });
  const skills = [{ skill: programOf(), similarity: 0.5, score: 0.5 }];
  return { queries, episodic: layer(episodic), semantic: layer(semantic), procedural: layer(skills) };
}

const input = (policy: Partial<Parameters<typeof recall>[0]['policy']> = {}) => ({
  scope: { tenant: 'acme', agent: 'default', user: null },
  cue: 'the cue',
  rolloutId: 't00000000-r1',
  shows: () => true,
  policy: { off: false, recallCount: 3, layers: ['episodic', 'semantic', 'procedural'] as MemoryLayer[], ...policy },
});

it('takes the best of each layer in turn', async () => {
  const { items } = await recall(input(), memory([hit('e1'), hit('e2')], [hit('f1', 'f1', 'semantic')]));
  expect(items.map(({ id }) => id)).toEqual(['e1', 'f1', 'double_it@1', 'e2']);
  expect(items[2]?.text).toContain('print("right")');
  expect(Object.keys(items[0] ?? {})).not.toContain('sources');
});

it.each([
  [null, '@nobody'],
  ['ann', 'ann'],
])('reads memories of user %s as %s', async (user, asked) => {
  const scopes: ReadScope[] = [];
  const noting = (scope: ReadScope) => (scopes.push(scope), Promise.resolve([]));
  const layers = { episodic: { search: noting }, semantic: { search: noting }, procedural: { search: noting } };
  await recall({ ...input(), scope: { tenant: 'acme', agent: 'default', user } }, layers);
  expect(new Set(scopes.map((scope) => scope.user))).toEqual(new Set([asked]));
});

it('keeps the sources of a fact', async () => {
  const fact = { ...hit('f1', 'f1', 'semantic'), kind: 'fact', sources: ['told.1', 'facts/f1'] };
  const { items } = await recall(input({ layers: ['semantic'] }), memory([], [fact]));
  expect(items).toMatchObject([{ id: 'f1', sources: ['told.1', 'facts/f1'] }]);
});

it('leaves out repeats and records of the rollout itself', async () => {
  const { items } = await recall(
    input({ layers: ['episodic', 'semantic'] }),
    memory([hit('e1', 'Same  text'), hit('t00000000-r1.a1')], [hit('f1', 'Same text '), hit('e1')]),
  );
  expect(items.map(({ id }) => id)).toEqual(['e1']);
});

it.each([{ off: true }, { recallCount: 0 }, { layers: [] }])('asks nothing where the policy is %j', async (policy) => {
  const layers = memory([hit('e1')], []);
  expect(await recall(input(policy), layers)).toEqual({ items: [], offered: [] });
  expect(layers.queries).toEqual([]);
});

it('searches the layers of the policy for its number of items', async () => {
  const layers = memory(
    Array.from({ length: 9 }, (_, at) => hit(`e${at}`)),
    [],
  );
  expect((await recall(input({ layers: ['episodic'], recallCount: 7 }), layers)).items).toHaveLength(7);
  expect(layers.queries).toEqual([{ text: 'the cue', limit: 14, explain: true }]);
});

it('returns visible skills of all owners, and lists them as offered', async () => {
  const shared = programOf({ name: 'shared', code: 'print(2)', scope: { tenant: 'acme', agent: '@tenant', user: null } });
  const theirs = programOf({ name: 'theirs', code: 'print(3)', scope: { tenant: 'acme', agent: 'default', user: 'bob' } });
  const layers = { ...memory([], []), procedural: { search: ownedBy(programOf(), shared, theirs, programOf({ name: 'hidden' })) } };
  const { items, offered } = await recall({ ...input({ layers: ['procedural'] }), shows: ({ name }) => name !== 'hidden' }, layers);
  expect(items.map(({ id }) => id)).toEqual(['double_it@1', 'shared@1']);
  expect(offered).toEqual([
    { tenant: 'acme', agent: 'default', user: null, name: 'double_it', version: 1 },
    { tenant: 'acme', agent: '@tenant', user: null, name: 'shared', version: 1 },
  ]);
});

function ownedBy(...skills: ReadonlyArray<ReturnType<typeof programOf>>) {
  return ({ tenant, agent, also = [] }: ReadScope) =>
    Promise.resolve(
      skills
        .filter(({ scope }) => scope.tenant === tenant && (scope.agent === agent || also.includes(scope.agent)))
        .map((skill) => ({ skill, similarity: 0.9, score: 0.9 })),
    );
}

const TOLD = 'told.0a1b';

it.each([
  ['transition', { id: 'tabcdefgh-r1.a2', kind: 'transition', sources: ['tabcdefgh-r1'] }, ['episodes/tabcdefgh-r1'], []],
  ['told episode', { id: TOLD, kind: 'episode', sources: [TOLD] }, [`episodes/${TOLD}`], [`episodes/${TOLD}`]],
  ['chunk', { id: 'd1f.0a1b', kind: 'chunk', sources: ['guide.md'] }, ['documents/d1f'], ['documents/d1f']],
  [
    'skill',
    { id: 'a@1', kind: 'skill', sources: ['tabcdefgh-r1.episode', 'tasks/tabcdefgh', 'documents/d1', 'web'] },
    ['episodes/tabcdefgh-r1', 'tasks/tabcdefgh', 'documents/d1', 'web'],
    ['documents/d1', 'web'],
  ],
])('names kind and id of each origin of a %s', (_name, shown, origins, untrustedOrigins) => {
  expect(provenanceOf(shown)).toEqual({ origins, untrustedOrigins });
});

const ofFact = (more: Parameters<typeof factOf>[0]) => {
  const fact = factOf(more);
  return provenanceOf({ id: fact.id, kind: 'fact', sources: factEntry(fact).sources });
};

it('trusts facts from rollouts, but no told or reworded fact', () => {
  const learned = { source: 'experience', episodes: ['tabcdefgh-r1.episode', 'tbcdefghi-r1.episode'] };
  expect(ofFact(learned)).toEqual({ origins: ['episodes/tabcdefgh-r1', 'episodes/tbcdefghi-r1'], untrustedOrigins: [] });
  const told = `facts/${factOf({}).id}`;
  expect(ofFact({ source: 'told', episodes: [] })).toEqual({ origins: [told], untrustedOrigins: [told] });
  expect(ofFact({ source: 'experience', episodes: [] }).untrustedOrigins).toEqual([told]);
  expect(ofFact({ ...learned, source: 'told' }).untrustedOrigins).toEqual([told]);
  expect(ofFact({ ...learned, episodes: [TOLD] }).untrustedOrigins).toEqual([`episodes/${TOLD}`]);
});
