import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Scope, Skill, SkillMember } from '@etude/contracts/memory';
import type { SkillUsage } from '@etude/contracts/skill-proof';
import type { SkillOffer, CountedUse } from '../../ports/memory.js';
import { contentDigest } from '../content-digest.js';

/** Maximum number of cues of a skill. Each cue is the prompt of a solved task. More cues would slow search down. */
export const SKILL_CUES_MAX = 64;

export const UNUSED: SkillUsage = {
  offered: 0,
  used: 0,
  fellBack: 0,
  lastUsedAt: null,
  failures: [],
  outputs: [],
  nondeterministic: false,
};

/** The possible owners of a used skill, likeliest first. @throws EtudeError PERMISSION_DENIED for a skill of another tenant that is not global */
export function ownersOfUse({ scope, owner }: CountedUse): readonly Scope[] {
  const { tenant, agent } = owner ?? scope;
  if (tenant !== scope.tenant && tenant !== GLOBAL_TENANT)
    throw new EtudeError('PERMISSION_DENIED', `tenant "${scope.tenant}" can't use a skill of tenant "${tenant}"`);
  const users = owner?.user === undefined ? [...new Set([null, scope.user])] : [owner.user];
  return users.map((user) => ({ tenant, agent, user }));
}

/** The write that counts a use of a skill by `scope`. Without a cue and a fingerprint in `more`, the skill learns no task from the use. */
export function useOf(
  { name, version, scope: { tenant, agent, user } }: Pick<Skill, 'name' | 'version' | 'scope'>,
  scope: Scope,
  more: Pick<CountedUse, 'success' | 'at'> & Partial<CountedUse>,
): CountedUse {
  const owner = { tenant, agent, ...(user === null ? {} : { user }) };
  return { kind: 'skill_use', scope, owner, name, version, fingerprint: '', cue: '', ...more };
}

const LISTED_MAX = 10;
const FAILING_RATE_MAX = 0.5;

/**
 * The counts of each agent's skills, all versions together, and lists of at most ten skills. `fellBackCount` counts uses after which a model had to
 * do the work. `failing` skills are active and fail in more than half of their uses. `unused` skills are active and were never used or loaded.
 */
export async function skillStats(skills: AsyncIterable<Skill> | Iterable<Skill>) {
  const counts = new Map<string, ReturnType<typeof statsOf>>();
  const [mostUsed, failing, unused]: [Skill[], Skill[], Skill[]] = [[], [], []];
  for await (const skill of skills) {
    const { scope, status, successRate } = skill;
    counts.set(scope.agent, statsOf(skill, counts.get(scope.agent)));
    const isUsed = usesOf(skill) > 0;
    if (isUsed) insertInto(mostUsed, skill, (a, b) => usesOf(b) - usesOf(a));
    if (status !== 'active') continue;
    if (isUsed && successRate < FAILING_RATE_MAX) insertInto(failing, skill, (a, b) => a.successRate - b.successRate);
    if (!isUsed && (skill.usage?.lastUsedAt ?? null) === null) insertInto(unused, skill, (a, b) => a.createdAt - b.createdAt);
  }
  return { agents: [...counts.values()].toSorted((a, b) => (a.agent < b.agent ? -1 : 1)), mostUsed, failing, unused };
}

const NO_COUNTS = { byStatus: {} as Readonly<Record<string, number>>, offeredCount: 0, usedCount: 0, succeededCount: 0, fellBackCount: 0 };

function statsOf(skill: Skill, before = NO_COUNTS) {
  const { scope, status, usage, executionCount } = skill;
  return {
    agent: scope.agent,
    byStatus: { ...before.byStatus, [status]: (before.byStatus[status] ?? 0) + 1 },
    offeredCount: before.offeredCount + (usage?.offered ?? 0),
    usedCount: before.usedCount + usesOf(skill),
    succeededCount: before.succeededCount + executionCount,
    fellBackCount: before.fellBackCount + (usage?.fellBack ?? 0),
  };
}

function insertInto(list: Skill[], skill: Skill, order: (a: Skill, b: Skill) => number): void {
  const sorted = [...list, skill].toSorted((a, b) => order(a, b) || (a.name < b.name ? -1 : 1));
  list.splice(0, list.length, ...sorted.slice(0, LISTED_MAX));
}

export const usesOf = ({ usage }: Pick<Skill, 'usage'>) => usage?.used ?? 0;

/**
 * The skill after one batch of offers, which counts as one offer. A load also updates the time of last use, so that pruning keeps skills
 * that are only loaded. A load isn't a use, because the code may never call the skill.
 */
export function afterOffers(skill: Skill, offers: readonly SkillOffer[]): Skill {
  if (offers.length === 0) return skill;
  const loadedAt = Math.max(...offers.map((offer) => offer.loadedAt ?? 0));
  const { offered, lastUsedAt, ...usage } = skill.usage ?? UNUSED;
  const lastUse = loadedAt === 0 ? lastUsedAt : Math.max(lastUsedAt ?? 0, loadedAt);
  const idle = loadedAt === 0 ? idleOffersOf(skill) + 1 : 0;
  return { ...skill, usage: { ...usage, offered: offered + 1, idle, lastUsedAt: lastUse } };
}

/** Number of offers since the last use or load. */
export const idleOffersOf = ({ usage = UNUSED }: Pick<Skill, 'usage'>) => usage.idle ?? (usage.lastUsedAt === null ? usage.offered : 0);

/** The skill with the members, cues and fingerprints of another skill that does the same. A repeat adds nothing. */
export function absorbed(skill: Skill, { name, version, fingerprints, cues, members = [] }: Skill): Skill {
  const known = skill.members ?? [];
  const isNew = ({ skill: one }: SkillMember) => !known.some((member) => one !== undefined && member.skill?.name === one.name);
  const added = [{ skill: { name, version }, fingerprints: [...fingerprints], fixed: {} }, ...members].filter(isNew);
  return {
    ...skill,
    members: [...known, ...added],
    cues: [...new Set([...skill.cues, ...cues])].slice(0, SKILL_CUES_MAX),
    fingerprints: [...new Set([...skill.fingerprints, ...fingerprints])],
  };
}

const RATE_ALPHA = 0.1;
const FAILURES_MAX = 10;
const OUTPUTS_MAX = 64;
const DIGEST_CHARS = 16;

/** A skill after one more use. The success rate is an exponential moving average. Only a success adds the cue and fingerprint of the use. */
export function afterUse(skill: Skill, use: CountedUse): Skill {
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

function usageAfter(skill: Skill, use: CountedUse): SkillUsage {
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

/** What is stored about a failed use. If a user used a shared skill, only the kind of error is stored, because messages quote the input. */
function failureOf(skill: Skill, use: CountedUse, { input, error }: NonNullable<CountedUse['failure']>): SkillUsage['failures'][number] {
  if (mayBeTold(skill, use)) return { at: use.at, input, error };
  return { at: use.at, input: '', error: /^[A-Za-z_][\w.]*(?=:)/.exec(error)?.[0] ?? (error.includes(':') ? 'an error' : error) };
}

/** Digests for comparing uses of this skill. They are shortened and salted with the skill's digest, so that they can't identify a user. */
function digestsOf({ digest }: Skill, { inputDigest, outputDigest }: CountedUse): { input: string; output: string } {
  const cut = (of: string | undefined) => (of === undefined ? '' : contentDigest([digest, of]).slice(0, DIGEST_CHARS));
  return { input: cut(inputDigest), output: cut(outputDigest) };
}

/**
 * Whether the skill may keep the task of this use, as a cue or a digest. A user's task is kept only in that user's own skills. In a shared skill,
 * other users could read it, and erasure would miss it. For the same reasons, tasks stay within their tenant.
 */
function mayBeTold({ scope }: Skill, use: CountedUse): boolean {
  return use.scope.tenant === scope.tenant && (use.scope.user === null || use.scope.user === scope.user);
}
