import { create } from '@bufbuild/protobuf';
import { SkillReviewSchema, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { describe, expect, it } from 'vitest';
import { colouredDiff } from './colour-diff.js';
import { doneLine, reviewText, skillTable, skillText, versionWords } from './skill-lines.js';
import { skillReference, wholeSkill } from './skill-reference.js';

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
    });
    const text = reviewText(review, '--- a\n+++ b');
    for (const part of ['tests (1, and 2 held out):', 'twice@1, 0.90: Twice.', 'called by:\n  quadruple@1', '--- a\n+++ b'])
      expect(text).toContain(part);
  });
});

describe('a diff with colours', () => {
  it('colours lines, and escapes what would be a colour of its own', () => {
    expect(colouredDiff('--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new \u001b[31mred\n same')).toBe(
      '\u001b[1m--- a\u001b[0m\n\u001b[1m+++ b\u001b[0m\n\u001b[36m@@ -1 +1 @@\u001b[0m\n\u001b[31m-old\u001b[0m\n\u001b[32m+new \\x1b[31mred\u001b[0m\n same',
    );
  });
});

describe('the name of a skill', () => {
  it('is told with whose it is, as a shell takes it', () => {
    const slug = { name: 'skills/slug', version: 3, agent: '@user', user: '' };
    expect(versionWords(slug)).toBe('slug@3 --agent @user');
    expect(versionWords({ ...slug, user: "ann o'hara" })).toBe(`slug@3 --agent @user --user 'ann o'\\''hara'`);
  });

  it('may say a version', () => {
    expect(skillReference('double@3', { agent: 'solver' })).toEqual({ name: 'skills/double', version: 3, agent: 'solver', user: '' });
    expect(skillReference('skills/double')).toEqual({ name: 'skills/double', version: 0, agent: '', user: '' });
  });

  it.each(['', 'a/b', 'double@', 'double@0', 'double@x', 'skills/'])('is not %j', (text) => {
    expect(() => skillReference(text)).toThrow('is no skill');
  });

  it('says no version where none can be chosen', () => {
    expect(() => wholeSkill('double@3')).toThrow('without a version');
  });
});
