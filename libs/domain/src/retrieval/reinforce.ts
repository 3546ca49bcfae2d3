import type { Fact, MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillUsage } from '@etude/contracts/skill-proof';
import { contentDigest } from '../skills/content-digest.js';
import { untrustedAmong } from '../trust/sources.js';
import { SKILL_CUES_MAX, UNUSED } from '../skills/life/usage.js';
import { isTold } from './entries.js';

const RATE_ALPHA = 0.1;
const FAILURES_MAX = 10;
const OUTPUTS_MAX = 64;
const DIGEST_CHARS = 16;

type SkillUse = Extract<MemoryWrite, { kind: 'skill_use' }>;

/** When the fact became true, in ms since 1970. */
export function factTime(fact: Fact): number {
  return fact.validFrom ?? fact.createdAt;
}

/** When the fact was last told or edited, in ms since 1970. Only a newer fact can replace it. */
export function lastTold(fact: Fact): number {
  return Math.max(factTime(fact), fact.updatedAt ?? 0);
}

/** A known fact after it was told or seen again. Each supporting episode counts once, however often it is given. */
export function reinforce(known: Fact, again: Fact): Fact {
  const episodes = [...new Set([...known.episodes, ...again.episodes])];
  const more = again.episodes.length === 0 ? again.support : episodes.length - known.episodes.length;
  const at = Math.max(lastTold(known), lastTold(again));
  return {
    ...known,
    episodes,
    ...touchedBy(known, again, episodes),
    ...(again.digest !== undefined && lastTold(again) >= lastTold(known) ? { digest: again.digest } : {}),
    support: known.support + more,
    confidence: Math.max(known.confidence, again.confidence),
    ...(at > factTime(known) ? { updatedAt: at } : {}),
  };
}

/** The untrusted sources of the fact. A told fact keeps its text, so it stays marked as told even if episodes support it later. */
function touchedBy(known: Fact, again: Fact, episodes: Fact['episodes']): Pick<Fact, 'touched'> {
  const told = isTold(known) && !isTold({ ...known, episodes }) ? [`facts/${known.id}`] : [];
  const touched = untrustedAmong([...told, ...(known.touched ?? []), ...(again.touched ?? [])]);
  return touched.length === 0 ? {} : { touched };
}

/**
 * A skill after one more use: counts, the success rate as an exponential moving average, usage, and after a success the new cue and
 * fingerprint.
 */
export function afterUse(skill: Skill, use: SkillUse): Skill {
  const { success, cue, fingerprint, at } = use;
  const learns = success && mayBeTold(skill, use);
  const isNewCue = cue.trim() !== '' && skill.cues.length < SKILL_CUES_MAX && !skill.cues.includes(cue);
  return {
    ...skill,
    executionCount: skill.executionCount + (success ? 1 : 0),
    successRate: (1 - RATE_ALPHA) * skill.successRate + RATE_ALPHA * (success ? 1 : 0),
    cues: learns && isNewCue ? [...skill.cues, cue] : skill.cues,
    fingerprints: learns && fingerprint !== '' ? [...new Set([...skill.fingerprints, fingerprint])] : skill.fingerprints,
    usage: usageAfter(skill, use),
    updatedAt: Math.max(skill.updatedAt, at),
  };
}

function usageAfter(skill: Skill, use: SkillUse): SkillUsage {
  const usage = skill.usage ?? UNUSED;
  const { input, output } = digestsOf(skill, use);
  const before = usage.outputs.find((known) => known.input === input);
  const isNew = input !== '' && output !== '' && before === undefined;
  return {
    ...usage,
    used: usage.used + 1,
    idle: 0,
    fellBack: usage.fellBack + (use.fellBack === true ? 1 : 0),
    lastUsedAt: Math.max(usage.lastUsedAt ?? 0, use.at),
    failures: use.failure ? [failureOf(skill, use, use.failure), ...usage.failures].slice(0, FAILURES_MAX) : usage.failures,
    outputs: isNew ? [{ input, output }, ...usage.outputs].slice(0, OUTPUTS_MAX) : usage.outputs,
    nondeterministic: usage.nondeterministic || (before !== undefined && output !== '' && before.output !== output),
  };
}

/** The failure to store. If a user used a shared skill, only the kind of error is kept, because messages quote the input. */
function failureOf(skill: Skill, use: SkillUse, { input, error }: NonNullable<SkillUse['failure']>): SkillUsage['failures'][number] {
  if (mayBeTold(skill, use)) return { at: use.at, input, error };
  return { at: use.at, input: '', error: /^[A-Za-z_][\w.]*(?=:)/.exec(error)?.[0] ?? (error.includes(':') ? 'an error' : error) };
}

/** Digests for comparing uses of this skill. They are shortened and salted with the skill's digest, so that they can't identify a user. */
function digestsOf({ digest }: Skill, { inputDigest, outputDigest }: SkillUse): { input: string; output: string } {
  const cut = (of: string | undefined) => (of === undefined ? '' : contentDigest([digest, of]).slice(0, DIGEST_CHARS));
  return { input: cut(inputDigest), output: cut(outputDigest) };
}

/**
 * Whether the skill may keep the task of this use, as a cue or a digest. A user's task is kept only in that user's own skills: other users
 * could read it in a shared one, and erasure would miss it. Tasks stay within their tenant for the same reasons.
 */
function mayBeTold({ scope }: Skill, use: SkillUse): boolean {
  return use.scope.tenant === scope.tenant && (use.scope.user === null || use.scope.user === scope.user);
}
