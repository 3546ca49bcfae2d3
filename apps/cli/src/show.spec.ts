import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { SandboxSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { SearchSkillsResponse_HitSchema, SkillReviewSchema, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { TaskSchema, TaskState, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { expect, it } from 'vitest';
import { details, tableOf } from './show.js';

const skill = create(SkillSchema, {
  name: 'skills/double',
  version: 2,
  agent: 'solver',
  status: SkillStatus.PENDING_REVIEW,
  description: 'Doubles.',
  code: 'def double(n):\n    return n * 2\n',
  untrusted: ['it was learned where text of documents/d1 was read'],
  dependencies: [{ name: 'skills/add', version: 3 }],
  tags: ['math', 'easy'],
  history: [{ time: timestampFromMs(0), by: 'ann', to: SkillStatus.PENDING_REVIEW, reason: 'its tests pass' }],
  usedCount: 4n,
  successRate: 0.75,
});

it('prints short fields as rows, then lists, then long texts', () => {
  expect(details(SkillSchema, skill)).toBe(`name          double
agent         solver
version       2
status        pending_review
description   Doubles.
tags          math, easy
success rate  0.75
used count    4

dependencies:
  add@3

history:
  1970-01-01T00:00:00Z  ann  pending_review  its tests pass

untrusted:
  it was learned where text of documents/d1 was read

code:
def double(n):
    return n * 2`);
});

it('prints parts of a message below their names', () => {
  const review = create(SkillReviewSchema, { skill, similar: [{ skill, similarity: 0.9 }], diff: { codeDiff: '--- a\n+++ b\n' } });
  const text = details(SkillReviewSchema, review);
  for (const part of ['skill:\n  name          double', 'similar:\n  double@2  similarity 0.9', 'diff:\n  code diff:\n  --- a\n  +++ b'])
    expect(text).toContain(part);
  const labels = { k: 'v' };
  expect(details(SandboxSchema, create(SandboxSchema, { state: SandboxState.LOST, labels, limits: { cpuTime: { seconds: 2n } } }))).toBe(
    'state  lost\n\nlimits:\n  cpu time  2.0 s\n\nlabels:\n  k  v',
  );
});

it('prints the set fields of a record, without empty lists', () => {
  const record = create(MemoryRecordSchema, { kind: 'fact', id: 'f1', fields: { fact: 'a', wordings: [], score: 0.5 } });
  expect(details(MemoryRecordSchema, record)).toBe('id    f1\nkind  fact\n\nfields:\n  fact   a\n  score  0.5');
});

it('prints columns by their paths, and marks scripted answers', () => {
  const task = create(TaskSchema, {
    name: 'tasks/t1',
    state: TaskState.SUCCEEDED,
    spec: { prompt: 'Add.\nMore.' },
    result: { verdict: Verdict.AC, scripted: true },
  });
  const columns = ['name', 'state', 'result.verdict', 'usage.attempts', 'spec.prompt'];
  expect(tableOf(TaskSchema, [task], columns).split('\n')).toEqual([
    'NAME  STATE      VERDICT  ATTEMPTS  PROMPT',
    't1    succeeded  AC       -         Add. [scripted]',
  ]);
  const hit = create(SearchSkillsResponse_HitSchema, { similarity: 0.91234, skill });
  expect(tableOf(SearchSkillsResponse_HitSchema, [hit], ['similarity', 'skill.name'])).toContain('0.912       double');
  expect(tableOf(TaskSchema, [], columns)).toBe('');
});
