import { expect, it } from 'vitest';
import { factEntry } from '../retrieval/entries.js';
import { factOf } from '../../test/memory-records.js';
import { provenanceOf } from './recall.js';

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
])('names the kind and id of what a %s comes from', (_name, hit, origins, untrustedOrigins) => {
  expect(provenanceOf(hit)).toEqual({ origins, untrustedOrigins });
});

const ofFact = (more: Parameters<typeof factOf>[0]) => {
  const fact = factOf(more);
  return provenanceOf({ id: fact.id, kind: 'fact', sources: factEntry(fact).sources });
};

it('trusts a fact that was learned from rollouts, and none that somebody told or reworded', () => {
  const learned = { source: 'experience', episodes: ['tabcdefgh-r1.episode', 'tbcdefghi-r1.episode'] };
  expect(ofFact(learned)).toEqual({ origins: ['episodes/tabcdefgh-r1', 'episodes/tbcdefghi-r1'], untrustedOrigins: [] });
  const told = `facts/${factOf({}).id}`;
  expect(ofFact({ source: 'told', episodes: [] })).toEqual({ origins: [told], untrustedOrigins: [told] });
  expect(ofFact({ source: 'experience', episodes: [] }).untrustedOrigins).toEqual([told]);
  expect(ofFact({ ...learned, source: 'told' }).untrustedOrigins).toEqual([told]);
  expect(ofFact({ ...learned, episodes: [TOLD] }).untrustedOrigins).toEqual([`episodes/${TOLD}`]);
});
