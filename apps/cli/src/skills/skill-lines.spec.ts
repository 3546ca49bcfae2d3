import { create } from '@bufbuild/protobuf';
import { SkillReviewSchema, SkillSchema, SkillStatus, WantedSkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { describe, expect, it } from 'vitest';
import { doneLine, failureNotes, reviewText, skillTable, skillText, versionWords, wantedTable } from './skill-lines.js';

const skill = create(SkillSchema, {
  name: 'skills/double',
  version: 2,
  agent: 'solver',
  kind: 'function',
  status: SkillStatus.PENDING_REVIEW,
  statusReason: 'waits for review',
  description: 'Doubles.',
  code: 'def double(n): return n * 2\n',
  untrusted: ['it was learned where text of documents/d1 was read'],
  usedCount: 4n,
  executionCount: 3n,
  successRate: 0.75,
});

describe('a skill in text', () => {
  it('is one line of a table', () => {
    expect(skillTable([skill]).split('\n')[1]).toMatch(/^double +2 +solver +function +pending_review +4 +0\.75 +Doubles\.$/);
  });

  it('has a column for users where one of them is a user’s', () => {
    const lines = skillTable([skill, { ...skill, user: 'ann' }]).split('\n');
    expect(lines[0]).toMatch(/AGENT +USER +KIND/);
    expect(lines.slice(1).map((line) => line.split(/ +/)[3])).toEqual(['-', 'ann']);
  });

  it('says first why it is not trusted, and last its code', () => {
    const text = skillText(skill);
    expect(text).toContain('not trusted, so that somebody has to approve it:\n  it was learned where text of documents/d1 was read');
    expect(text.endsWith('code:\ndef double(n): return n * 2')).toBe(true);
  });

  it('says what became of it', () => {
    expect(doneLine(skill)).toBe('double@2 is pending_review: waits for review');
  });

  it('shows a reviewer tests, similar ones, callers and what changed', () => {
    const review = create(SkillReviewSchema, {
      skill,
      tests: ['{"kind":"call"}'],
      heldOutCount: 2,
      similar: [{ skill: { name: 'skills/twice', version: 1, description: 'Twice.' }, similarity: 0.9 }],
      dependents: [{ name: 'skills/quadruple', version: 1 }],
      diff: { codeDiff: '--- a\n+++ b' },
    });
    const text = reviewText(review);
    for (const part of ['tests (1, and 2 held out):', 'twice@1, 0.90: Twice.', 'called by:\n  quadruple@1', '--- a\n+++ b'])
      expect(text).toContain(part);
  });
});

describe('the name of a skill', () => {
  it('is told with whose it is, as a shell takes it', () => {
    const slug = { name: 'skills/slug', version: 3, agent: '@user', user: '' };
    expect(versionWords(slug)).toBe('slug@3 --agent @user');
    expect(versionWords({ ...slug, user: "ann o'hara" })).toBe(`slug@3 --agent @user --user 'ann o'\\''hara'`);
  });
});

const waiting = create(WantedSkillSchema, {
  name: 'wantedSkills/w1',
  skill: 'skills/initials',
  agent: 'writer',
  state: 'waiting',
  asked: 1,
  description: 'Initials of a name.',
});
const failed = create(WantedSkillSchema, { ...waiting, name: 'wantedSkills/w2', state: 'failed', reason: 'its tests fail\nsee there' });

it('lists wishes with why they failed, where one did', () => {
  const [head = '', ...rows] = wantedTable([waiting, failed]).split('\n');
  expect(head).toMatch(/ASKED +DESCRIPTION +REASON$/);
  expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
    ['wantedSkills/w1', 'initials', 'writer', 'waiting', '1', 'Initials of a name.', '-'],
    ['wantedSkills/w2', 'initials', 'writer', 'failed', '1', 'Initials of a name.', expect.stringContaining('its tests fail')],
  ]);
  expect(wantedTable([waiting])).not.toContain('REASON');
});

it('names --package where a module is missing', () => {
  expect(failureNotes('its tests fail: test 1 of 1: raised ModuleNotFoundError at line 1')).toEqual([expect.stringContaining('--package')]);
  expect(failureNotes('its tests fail: test 1 of 1: wrong answer')).toEqual([]);
});
