import type { Skill, SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { proposeSkill } from '../../consolidation/propose-skill.js';
import { episodeOf, NEW_YEAR } from '../../../test/memory-records.js';
import { provenSkill } from '../../../test/hygiene-fixture.js';
import { skillDigest } from '../content-digest.js';
import { keyOf, movedSkill } from './skill-life.js';
import { touchedSources } from '../../trust/sources.js';

const TEST: SkillTest = { kind: 'call', args: [1], kwargs: {}, expected: 2, tolerance: 0 };
const solved = (id: string, over: object = {}) =>
  episodeOf({ id, code: 'def total(xs):\n    return sum(xs)\n', tests: [TEST], fingerprint: id, ...over });
const CLEAN = solved('taaaaaaaa-r1.episode');
const GROUP = [CLEAN, solved('tbbbbbbbb-r1.episode')];
const PROPOSAL = { description: 'Adds.', scenarios: [], scripted: false, at: NEW_YEAR };

/** A verified skill that nobody reviewed. */
function verified(skill: Skill): Skill {
  const digest = skillDigest(skill);
  const { proof } = provenSkill('any');
  return { ...skill, digest, status: 'verified', proof: { ...proof!, digest } };
}
const approvedByItself = (skill: Skill) =>
  movedSkill(skill, { key: keyOf(skill), to: 'active', by: 'verification', reason: 'automatic', at: 2 });

describe('a skill that was learned while a poisoned document was shown', () => {
  const touched = touchedSources([{ id: 'poison.0011', kind: 'chunk' }]);

  it('is marked, whichever episode of the group saw it', () => {
    const skill = proposeSkill([CLEAN, solved('tbbbbbbbb-r1.episode', { touched, code: 'other' })], [], PROPOSAL);
    expect(skill?.sources).toContain('documents/poison');
    expect(skill?.untrusted).toEqual(['it was learned where text of documents/poison was read']);
  });

  it('is marked where an outside agent told one of the episodes', () => {
    const told = episodeOf({ id: 'x0f', success: false, code: null, experience: { context: ['c'], actions: [], outcomes: [] } });
    expect(proposeSkill([...GROUP, told], [], PROPOSAL)?.untrusted).toHaveLength(1);
  });

  it('becomes active only after a review', () => {
    const marked = verified(proposeSkill([CLEAN, solved('tbbbbbbbb-r1.episode', { touched })], [], PROPOSAL)!);
    expect(() => approvedByItself(marked)).toThrow('has to be reviewed');
    const waiting = movedSkill(marked, { key: keyOf(marked), to: 'pending_review', by: 'verification', reason: '', at: 2 });
    expect(movedSkill(waiting, { key: keyOf(waiting), to: 'active', by: 'ann', reason: 'looked', at: 3 }).status).toBe('active');
    const clean = verified(proposeSkill(GROUP, [], PROPOSAL)!);
    expect(approvedByItself(clean).status).toBe('active');
  });
});
