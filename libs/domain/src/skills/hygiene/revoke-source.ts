import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Episode, Fact, Skill } from '@etude/contracts/memory';
import { calledVersions, callersFirst, everySkill, versionKey } from '../life/every-skill.js';
import { type HygieneDeps, moveTo } from './prune.js';
import { rolloutOf, type Source, sourceOf } from './untrusted.js';

/**
 * What memory keeps beside skills, as far as revoking needs it.
 *
 * Not in it: what rests on what. @throws EtudeError MEMORY_UNAVAILABLE
 */
export interface LearnedRecords {
  /** Every episode of a tenant, in no order. */
  episodes(tenant: string): AsyncIterable<Episode>;
  /** Puts in the place of each fact that still holds what `change` makes of it; null leaves it. Asked again for one that changed meanwhile. */
  reviseFacts(tenant: string, change: (fact: Fact) => Fact | null): Promise<void>;
}

export interface RevokeInput {
  readonly tenant: string;
  /** "tasks/{task}", "episodes/{id}", "documents/{id}", "facts/{id}", "wantedSkills/{id}", "users/{user}". */
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

const REVOCABLE: ReadonlySet<string> = new Set(['tasks', 'episodes', 'documents', 'facts', 'wantedSkills', 'users', 'imports']);

/**
 * Withdraws what was learned from a source: skills that name it, those that call them, at any depth, and facts that rest on nothing
 * else. What was learned in sight of an episode that was itself made in sight of the source counts as well. All of it is archived,
 * whatever it was, and loses its proof: whoever takes it back, it is used again only where it was verified again.
 *
 * @throws EtudeError INVALID_ARGUMENT for a name that is no source, ABORTED where a skill was moved meanwhile, MEMORY_UNAVAILABLE
 */
export async function revokeSource(input: RevokeInput, deps: HygieneDeps & { readonly learned: LearnedRecords }): Promise<Revoked> {
  const { tenant, dryRun, by, at } = input;
  const source = sourceOf(input.source);
  if (source === null || !REVOCABLE.has(source.kind))
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `${JSON.stringify(input.source.slice(0, 100))} is no source; name a task, an episode, a document, a wanted skill or a user, such as "tasks/t0192f0c8a1b2".`,
      { field: 'source' },
    );
  const tainted = await taintedBy(source, tenant, deps.learned);
  const skills = withdrawals(await skillsInReach(input, source, deps), tainted, becauseOf(input.source));
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

async function skillsInReach(
  { tenant, global = false }: RevokeInput,
  source: Source,
  { procedural }: HygieneDeps,
): Promise<readonly Skill[]> {
  const own = await everySkill(procedural, { tenant, agent: null });
  if (!global || source.kind === 'users') return own;
  return [...own, ...(await everySkill(procedural, { tenant: GLOBAL_TENANT, agent: null }))];
}

const becauseOf = (source: string) => `its source ${source} was revoked`;

/** The source with every episode that was made of it, or in sight of one of those. */
interface Tainted {
  readonly source: Source;
  /** Rollouts for those of rollouts, else ids. */
  readonly episodes: ReadonlySet<string>;
}

async function taintedBy(source: Source, tenant: string, learned: LearnedRecords): Promise<Tainted> {
  const episodes: Episode[] = [];
  for await (const episode of learned.episodes(tenant)) episodes.push(episode);
  const found = new Set(source.kind === 'episodes' ? [episodeKey(source.id)] : []);
  for (let size = -1; size < found.size;) {
    size = found.size;
    for (const episode of episodes) if (isOf(episode, { source, episodes: found })) found.add(episodeKey(episode.id));
  }
  return { source, episodes: found };
}

const episodeKey = (id: string) => rolloutOf(id) ?? id;

function isOf(episode: Episode, tainted: Tainted): boolean {
  const { source } = tainted;
  if (source.kind === 'tasks' && episode.taskId === source.id) return true;
  if (source.kind === 'users' && episode.scope.user === source.id) return true;
  return (episode.touched ?? []).some((name) => names(name, tainted));
}

/** Whether a name among sources is the source, or something that was made of it. */
function names(name: string, { source, episodes }: Tainted): boolean {
  const named = sourceOf(name);
  if (named === null) return false;
  if (named.kind === source.kind && named.id === source.id) return true;
  if (named.kind === 'episodes') {
    const key = episodeKey(named.id);
    return episodes.has(key) || (source.kind === 'tasks' && key.startsWith(`${source.id}-r`));
  }
  // A task's rollouts are one: what one of them learned, all of them may have.
  return named.kind === 'tasks' && [...episodes].some((episode) => rolloutOf(episode)?.startsWith(`${named.id}-r`) === true);
}

/**
 * Those that are withdrawn already are among them where this source was why, so that a repeat answers what the first call did; and where
 * they were archived for another reason and still have a proof, which would bring them back.
 */
function withdrawals(skills: readonly Skill[], tainted: Tainted, because: string): readonly Skill[] {
  const { source } = tainted;
  const out = new Set<string>();
  for (const skill of skills) {
    const isTheirs = source.kind === 'users' && skill.scope.user === source.id;
    if (isTheirs || skill.sources.some((name) => names(name, tainted))) out.add(versionKey(skill));
  }
  for (let size = -1; size < out.size;) {
    size = out.size;
    for (const skill of skills) {
      const seen = skill.sources.flatMap((name) => seenVersion(name, skill));
      if ([...calledVersions(skill), ...seen].some((key) => out.has(key))) out.add(versionKey(skill));
    }
  }
  const isMeant = ({ status, proof, history = [] }: Skill) =>
    status !== 'archived' || proof !== undefined || history.at(-1)?.reason.startsWith(because) === true;
  return callersFirst(skills.filter((skill) => out.has(versionKey(skill)) && isMeant(skill)));
}

/** A skill of the same owner that it was written in sight of. */
function seenVersion(name: string, { scope }: Skill): string[] {
  const source = sourceOf(name);
  const [, skill, version] = /^([a-z][a-z0-9_]*)@([0-9]+)$/.exec(source?.kind === 'skills' ? source.id : '') ?? [];
  return skill === undefined || version === undefined ? [] : [versionKey({ name: skill, version: Number(version), scope })];
}

async function withdrawFacts(tainted: Tainted, { tenant, dryRun, at }: RevokeInput, learned: LearnedRecords): Promise<readonly string[]> {
  const texts = new Map<string, string>();
  await learned.reviseFacts(tenant, (fact) => {
    const left = fact.episodes.filter((id) => !names(sourceOf(id) === null ? `episodes/${id}` : id, tainted));
    const { kind, id: sourceId } = tainted.source;
    const isMeant = (kind === 'users' && fact.scope.user === sourceId) || (kind === 'facts' && fact.id === sourceId);
    if (left.length === fact.episodes.length && !isMeant) return null;
    const isGone = left.length === 0 || isMeant;
    if (isGone) texts.set(fact.id, fact.text);
    if (dryRun) return null;
    const support = Math.max(1, fact.support - (fact.episodes.length - left.length));
    return isGone ? { ...fact, validTo: at, updatedAt: at } : { ...fact, episodes: left, support, updatedAt: at };
  });
  return [...texts.values()];
}
