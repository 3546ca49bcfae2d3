import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { reasonsNotTrusted, sourceOf, touchedSources, withMarks } from './sources.js';

it('names the touched documents, episodes and skills, each once', () => {
  expect(
    touchedSources([
      { id: 'd1f.0a1b', kind: 'chunk' },
      { id: 'd1f.ffff', kind: 'chunk' },
      { id: 'c2e.0000007', kind: 'turn' },
      { id: 'tabcdefgh-r1.a2', kind: 'transition' },
      { id: 'tabcdefgh-r1.episode', kind: 'summary' },
      { id: 'x0f', kind: 'episode' },
      { id: 'sum_even@2', kind: 'skill' },
      { id: 'fact-1', kind: 'fact' },
      { id: 'fact-2', kind: 'fact', sources: ['tabcdefgh-r1.episode', 'tbcdefghi-r2.episode', 'told.1'] },
      { id: 'fact-3', kind: 'fact', sources: ['facts/fact-3'] },
    ]),
  ).toEqual([
    'documents/d1f',
    'conversations/c2e',
    'episodes/tabcdefgh-r1',
    'episodes/x0f',
    'skills/sum_even@2',
    'episodes/tbcdefghi-r2',
    'episodes/told.1',
    'facts/fact-3',
  ]);
});

describe('reasonsNotTrusted', () => {
  it('trusts tasks, their episodes, wishes and users', () => {
    const sources = ['tasks/tabcdefgh', 'tabcdefgh-r1.episode', 'episodes/tabcdefgh-r1', 'wantedSkills/w1', 'users/ann', 'skills/a@1'];
    expect(reasonsNotTrusted(sources)).toEqual([]);
  });

  it('gives a reason for each source from outside', () => {
    const reasons = {
      'documents/d1': 'it was learned where text of documents/d1 was read',
      'conversations/c1': 'it was learned where words of conversations/c1 were read',
      'episodes/x0f': 'it was learned where episodes/x0f was read, which an outside agent told',
      'facts/f1': 'it was learned where facts/f1 was read, which was told',
      'procedures/p1': 'it rests on the words of procedures/p1, which were told',
      'imports/zip': 'it came in with imports/zip',
    };
    expect(reasonsNotTrusted([...Object.keys(reasons), 'tasks/tabcdefgh'])).toEqual(Object.values(reasons));
  });

  it.each(['web', 'Tasks/tabcdefgh', 'tasks/t1\ndocuments/d1', 'tasks/../documents', ' tasks/tabcdefgh', 'episodes/tabc'])(
    'does not trust the source %j',
    (source) => {
      expect(reasonsNotTrusted([source])).toHaveLength(1);
    },
  );
});

it.each<[Pick<Skill, 'sources' | 'untrusted'>, number]>([
  [{ sources: ['documents/d1'], untrusted: [] }, 1],
  [{ sources: ['tasks/tabcdefgh'], untrusted: ['somebody said so'] }, 1],
  [{ sources: ['tasks/tabcdefgh'] }, 0],
  [{ ...withMarks({ sources: ['documents/d1'] }), sources: ['tasks/tabcdefgh'] }, 1],
])('derives marks from sources and keeps stored marks: %j', (skill, marks) => {
  expect(withMarks(skill).untrusted ?? []).toHaveLength(marks);
});

it('reads names of sources and refuses other texts', () => {
  expect(sourceOf('documents/d1')).toEqual({ kind: 'documents', id: 'd1' });
  expect(sourceOf('tabcdefgh-r1.episode')).toEqual({ kind: 'episodes', id: 'tabcdefgh-r1.episode' });
  expect(sourceOf('constructor/x')).toBeNull();
});
