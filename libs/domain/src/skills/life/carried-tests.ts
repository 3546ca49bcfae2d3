import type { Skill, SkillTest } from '@etude/contracts/memory';
import { canonicalJson } from '../content-digest.js';
import { hasHiddenTests } from './hidden-tests.js';

/**
 * A version as it goes on from those before it: held-out tests go from version to version, and so does that some tests are hidden, whoever
 * wrote it, since an edit carries over those of the version before.
 *
 * @param versions all of this name that the owner has, newest first
 */
export function withCarriedTests(skill: Skill, versions: readonly Skill[]): Skill {
  const heldOut = joinedTests(versions[0]?.heldOut, skill.heldOut);
  return {
    ...skill,
    ...(heldOut.length === 0 ? {} : { heldOut }),
    ...(hasTestHiddenIn(versions, skill) ? { hiddenTests: true } : {}),
  };
}

/** Each once. */
export function joinedTests(known: readonly SkillTest[] = [], more: readonly SkillTest[] = []): SkillTest[] {
  return [...new Map([...known, ...more].map((test) => [canonicalJson(test), test])).values()];
}

function hasTestHiddenIn(versions: readonly Skill[], { tests }: Skill): boolean {
  const hidden = new Set(versions.filter(hasHiddenTests).flatMap((version) => version.tests.map(canonicalJson)));
  return tests.some((test) => hidden.has(canonicalJson(test)));
}
