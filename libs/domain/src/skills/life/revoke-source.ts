import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT, taskIdOf, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Episode, Fact, Scope, Skill } from '@etude/contracts/memory';
import { calledVersions, callersFirst, versionKey } from './call-graph.js';
import { isReadBy } from './find-skill.js';
import { SAME_CODE_MARK } from './marks.js';
import { codeDigest } from '../content-digest.js';
import { type PruneDeps, moveTo } from './prune.js';
import { episodeKey, rolloutOf, type Source, type SourceKind, sourceOf, sourcesOfMarks } from '../../trust/sources.js';

/**
 * What memory keeps beside skills, as far as revoking needs it.
 *
 * Not in it: what rests on what. @throws EtudeError MEMORY_UNAVAILABLE
 */
export interface LearnedRecords {
  /** Every episode of a tenant, in no order. */
  episodes(tenant: string): AsyncIterable<Episode>;
  /** Every fact of a tenant, what holds no more as well, in no order. */
  facts(tenant: string): AsyncIterable<Fact>;
  /** Puts in the place of each fact that still holds what `change` makes of it; null leaves it. Asked again for one that changed meanwhile. */
  reviseFacts(tenant: string, change: (fact: Fact) => Fact | null): Promise<void>;
}

export interface RevokeInput {
  readonly tenant: string;
  /** "tasks/{task}", "episodes/{id}", "documents/{id}", "facts/{id}", "procedures/{id}", "wantedSkills/{id}", "imports/{id}", "users/{user}", "skills/{name}@{version}", of whichever owner. */
  readonly source: string;
  readonly reason: string;
  readonly by: string;
  readonly dryRun: boolean;
  /** Also copies that were promoted to all tenants; for operators. Never by user: names of users repeat in other tenants. */
  readonly global?: boolean;
  /** ms since 1970 */
  readonly at: number;
}

export interface Revoked {
  /** Withdrawn, now or by a call before, or in a dry run those that would be; callers first. */
  readonly skills: readonly Skill[];
  /** Texts of facts that rest on nothing else. */
  readonly facts: readonly string[];
}

const REVOCABLE: ReadonlySet<string> = new Set([
  'tasks',
  'episodes',
  'documents',
  'facts',
  'procedures',
  'wantedSkills',
  'users',
  'imports',
  'skills',
]);

/**
 * Withdraws what was learned from a source: skills that name it, those that call them, at any depth, and facts that rest on nothing
 * else. What was learned in sight of an episode or a skill that was itself made in sight of the source counts as well, at any remove; so
 * does what carries a mark of any of that: later versions, and copies of the code. All of it is archived, whatever it was, and loses its
 * proof: whoever takes it back, it is used again only where it was verified again.
 *
 * @throws EtudeError INVALID_ARGUMENT for a name that is no source, ABORTED where a skill was moved meanwhile, MEMORY_UNAVAILABLE
 */
export async function revokeSource(input: RevokeInput, deps: PruneDeps & { readonly learned: LearnedRecords }): Promise<Revoked> {
  const { tenant, dryRun, by, at } = input;
  const source = requireSource(input.source);
  const inReach = await skillsInReach(input, source, deps);
  const tainted = await taintedBy(source, tenant, inReach, deps.learned);
  const skills = withdrawals(inReach, tainted, becauseOf(input.source));
  const facts = await withdrawFacts(tainted, input, deps.learned);
  const left = skills.filter(({ status, proof }) => status !== 'archived' || proof !== undefined);
  if (dryRun || left.length === 0) return { skills, facts };
  const reason = `${becauseOf(input.source)}${input.reason === '' ? '' : `: ${input.reason}`}`;
  const moves = left.map((skill) => ({ ...moveTo(skill, 'archived', { by, reason, at }), proof: null }));
  // What is everybody's calls nothing of a tenant's, so that callers still come first.
  const own = await deps.procedural.move(moves.filter(({ key }) => key.tenant === tenant));
  const global = await deps.procedural.move(moves.filter(({ key }) => key.tenant !== tenant));
  const moved = [...own, ...global];
  return { skills: [...moved, ...skills.filter((skill) => !left.includes(skill))], facts };
}

/** What a revoking of before answers to a repeat of its request: what it withdrew, as it is now. Nothing is changed. */
export async function revokedBy(input: RevokeInput, deps: PruneDeps & { readonly learned: LearnedRecords }): Promise<Revoked> {
  const { tenant, at } = input;
  const source = requireSource(input.source);
  const inReach = await skillsInReach(input, source, deps);
  const because = becauseOf(input.source);
  const skills = inReach.filter(({ history = [] }) => history.some((change) => change.at <= at && change.reason.startsWith(because)));
  const tainted = await taintedBy(source, tenant, inReach, deps.learned);
  const facts: string[] = [];
  for await (const fact of deps.learned.facts(tenant)) if (fact.validTo === at && restOf(fact, tainted).isGone) facts.push(fact.text);
  return { skills: callersFirst(skills), facts };
}

/** @throws EtudeError INVALID_ARGUMENT for a name that is no source */
function requireSource(name: string): Source {
  const source = sourceOf(name);
  if (source === null || !REVOCABLE.has(source.kind))
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `${JSON.stringify(name.slice(0, 100))} is no source; name a task, an episode, a document, a fact, a procedure, a wanted skill, an import, a version of a skill or a user, such as "tasks/t0192f0c8a1b2".`,
      { field: 'source' },
    );
  return source;
}

async function skillsInReach(
  { tenant, global = false }: RevokeInput,
  source: Source,
  { procedural }: PruneDeps,
): Promise<readonly Skill[]> {
  const skills: Skill[] = [];
  for await (const skill of procedural.every({ tenant, agent: null })) skills.push(skill);
  if (!global || source.kind === 'users') return skills;
  for await (const skill of procedural.every({ tenant: GLOBAL_TENANT, agent: null })) skills.push(skill);
  return skills;
}

const becauseOf = (source: string) => `its source ${source} was revoked`;

/** The source with all that was made of it, or in sight of one of those. */
interface Tainted {
  readonly source: Source;
  /** Rollouts for those of rollouts, else ids. */
  readonly episodes: Set<string>;
  /** Ids of those that the rollouts among `episodes` are of. */
  readonly tasks: Set<string>;
  /** By `versionKey`. */
  readonly skills: Set<string>;
  /** The same by "name@version", which those of several owners share. */
  readonly skillsByName: Map<string, Skill[]>;
  /** Of their code, as `codeDigest`. */
  readonly codes: Set<string | null>;
  /** By `nameKey`, of those that are copies of marked code: their later versions have that mark, and other code. */
  readonly copies: Set<string>;
}

async function taintedBy(source: Source, tenant: string, skills: readonly Skill[], learned: LearnedRecords): Promise<Tainted> {
  const episodes: Episode[] = [];
  for await (const episode of learned.episodes(tenant)) episodes.push(episode);
  const found: Tainted = {
    source,
    episodes: new Set(),
    tasks: new Set(),
    skills: new Set(),
    skillsByName: new Map(),
    codes: new Set(),
    copies: new Set(),
  };
  if (source.kind === 'episodes') addEpisode(source.id, found);
  for (let size = -1; size < found.episodes.size + found.skills.size;) {
    size = found.episodes.size + found.skills.size;
    for (const episode of episodes) if (isEpisodeOf(episode, found)) addEpisode(episode.id, found);
    for (const skill of skills) if (!found.skills.has(versionKey(skill)) && isSkillOf(skill, found)) addSkill(skill, found);
  }
  return found;
}

function addEpisode(id: string, { episodes, tasks }: Tainted): void {
  episodes.add(episodeKey(id));
  const rollout = rolloutOf(id);
  if (rollout !== null) tasks.add(taskIdOf(rollout));
}

function addSkill(skill: Skill, { skills, skillsByName, codes, copies }: Tainted): void {
  skills.add(versionKey(skill));
  codes.add(codeDigest(skill));
  if (skill.untrusted?.includes(SAME_CODE_MARK) === true) copies.add(nameKey(skill));
  const name = `${skill.name}@${skill.version}`;
  const alike = skillsByName.get(name);
  if (alike === undefined) skillsByName.set(name, [skill]);
  else alike.push(skill);
}

const nameKey = ({ scope, name }: Skill) => versionKey({ name, version: 0, scope });

function isEpisodeOf({ taskId, scope, touched = [] }: Episode, tainted: Tainted): boolean {
  const { source } = tainted;
  if (source.kind === 'tasks' && taskId === source.id) return true;
  if (source.kind === 'users' && scope.user === source.id) return true;
  return touched.some((name) => names(name, tainted) || namesSkill(name, scope, tainted));
}

function isSkillOf(skill: Skill, tainted: Tainted): boolean {
  const { source, skills, codes, copies } = tainted;
  const { scope, name, version, untrusted = [] } = skill;
  if (source.kind === 'users' && scope.user === source.id) return true;
  if (source.kind === 'skills' && source.id === `${name}@${version}`) return true;
  if (untrusted.includes(SAME_CODE_MARK) && (codes.has(codeDigest(skill)) || copies.has(nameKey(skill)))) return true;
  const sources = [...skill.sources, ...sourcesOfMarks(untrusted)];
  if (sources.some((one) => names(one, tainted) || namesSkill(one, scope, tainted))) return true;
  return calledVersions(skill).some((key) => skills.has(key));
}

/** Whether a name among sources is the source, or something that was made of it. */
function names(name: string, { source, episodes, tasks }: Tainted): boolean {
  const named = sourceOf(name);
  if (named === null) return false;
  if (kindOf(named) === source.kind && named.id === source.id) return true;
  if (named.kind === 'episodes') {
    const key = episodeKey(named.id);
    return episodes.has(key) || (source.kind === 'tasks' && key.startsWith(`${source.id}-r`));
  }
  // A task's rollouts are one: what one of them learned, all of them may have.
  return kindOf(named) === 'tasks' && tasks.has(named.id);
}

/** What is not trusted of a task or a skill has a name of its own. */
function kindOf({ kind }: Source): SourceKind {
  if (kind === 'untrustedTasks') return 'tasks';
  return kind === 'markedSkills' ? 'skills' : kind;
}

/** Whether it is a skill that was in sight of what this owner has. A name says no owner: of several that were read there, any may be meant. */
function namesSkill(name: string, owner: Scope, { skillsByName }: Tainted): boolean {
  const named = sourceOf(name);
  if (named === null || kindOf(named) !== 'skills') return false;
  return skillsByName.get(named.id)?.some(({ scope }) => mayHaveSeen(owner, scope)) === true;
}

/** What is shared has the sources of what it was shared from, which was any agent's. */
function mayHaveSeen(owner: Scope, seen: Scope): boolean {
  if (owner.tenant === GLOBAL_TENANT || owner.agent === TENANT_AGENT) return true;
  if (owner.agent === USER_AGENT) return seen.user === null || seen.user === owner.user;
  return isReadBy(seen, owner);
}

/**
 * Those that are withdrawn already are among them where this source was why, so that a repeat answers what the first call did; and where
 * they were archived for another reason and still have a proof, which would bring them back.
 */
function withdrawals(skills: readonly Skill[], tainted: Tainted, because: string): readonly Skill[] {
  const isMeant = ({ status, proof, history = [] }: Skill) =>
    status !== 'archived' || proof !== undefined || history.at(-1)?.reason.startsWith(because) === true;
  return callersFirst(skills.filter((skill) => tainted.skills.has(versionKey(skill)) && isMeant(skill)));
}

async function withdrawFacts(tainted: Tainted, { tenant, dryRun, at }: RevokeInput, learned: LearnedRecords): Promise<readonly string[]> {
  const texts = new Map<string, string>();
  await learned.reviseFacts(tenant, (fact) => {
    const { left, isGone } = restOf(fact, tainted);
    if (left.length === fact.episodes.length && !isGone) return null;
    if (isGone) texts.set(fact.id, fact.text);
    if (dryRun) return null;
    const support = Math.max(1, fact.support - (fact.episodes.length - left.length));
    return isGone ? { ...fact, validTo: at, updatedAt: at } : { ...fact, episodes: left, support, updatedAt: at };
  });
  return [...texts.values()];
}

/** What of its episodes is left without the source, and whether nothing is that it could rest on. */
function restOf({ id, scope, episodes }: Fact, tainted: Tainted): { readonly left: string[]; readonly isGone: boolean } {
  const left = episodes.filter((one) => !names(sourceOf(one) === null ? `episodes/${one}` : one, tainted));
  const { kind, id: sourceId } = tainted.source;
  const isMeant = (kind === 'users' && scope.user === sourceId) || (kind === 'facts' && id === sourceId);
  return { left, isGone: isMeant || (left.length === 0 && episodes.length > 0) };
}
