import type { Fact, MemoryWrite, Skill } from '@etude/contracts/memory';

/** Tasks that a skill solved and that it is found by; more would only slow search down. */
export const SKILL_CUES_MAX = 64;
const RATE_ALPHA = 0.1;

/** ms since 1970 from which on the fact is true. */
export function factTime(fact: Fact): number {
  return fact.validFrom ?? fact.createdAt;
}

/** ms since 1970 at which it was told last, or set by hand: what contradicts it must be newer than that. */
export function lastTold(fact: Fact): number {
  return Math.max(factTime(fact), fact.updatedAt ?? 0);
}

/** A known fact that was told or seen again. Each supporting episode counts once, however often it is brought forward. */
export function reinforce(known: Fact, again: Fact): Fact {
  const episodes = [...new Set([...known.episodes, ...again.episodes])];
  const more = again.episodes.length === 0 ? again.support : episodes.length - known.episodes.length;
  const at = Math.max(lastTold(known), lastTold(again));
  return {
    ...known,
    episodes,
    support: known.support + more,
    confidence: Math.max(known.confidence, again.confidence),
    ...(at > factTime(known) ? { updatedAt: at } : {}),
  };
}

/** A skill after one more use: counts, its rate by exponential moving average, and after a success its new cue and fingerprint. */
export function afterUse(skill: Skill, use: Extract<MemoryWrite, { kind: 'skill_use' }>): Skill {
  const { success, cue, fingerprint, at } = use;
  return {
    ...skill,
    executionCount: skill.executionCount + 1,
    successRate: (1 - RATE_ALPHA) * skill.successRate + RATE_ALPHA * (success ? 1 : 0),
    cues: success && mayBeTold(skill, use) && isNewCue(skill, cue) ? [...skill.cues, cue] : skill.cues,
    fingerprints: success && mayBeTold(skill, use) ? [...new Set([...skill.fingerprints, fingerprint])] : skill.fingerprints,
    updatedAt: Math.max(skill.updatedAt, at),
  };
}

/**
 * What a user asked for, its digest too, stays with what is theirs: others would find it in a skill that they share, and erasing
 * would miss it. Such a user finds a shared skill by likeness alone.
 */
function mayBeTold({ scope }: Skill, use: Extract<MemoryWrite, { kind: 'skill_use' }>): boolean {
  return use.scope.user === null || use.scope.user === scope.user;
}

function isNewCue(skill: Skill, cue: string): boolean {
  return cue.trim() !== '' && skill.cues.length < SKILL_CUES_MAX && !skill.cues.includes(cue);
}
