import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT, taskIdOf, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Episode, Fact, Scope, Skill } from '@etude/contracts/memory';
import type { SkillRegistry } from '../../ports/memory.js';
import { calledVersions, callersFirst, versionKey } from './call-graph.js';
import { isReadBy } from './find-skill.js';
import { SAME_CODE_MARK } from './carried-over.js';
import { codeDigest } from '../content-digest.js';
import { moveOf } from './skill-life.js';
import { episodeKey, rolloutOf, type Source, sourceOf, sourcesOfMarks } from '../../trust/sources.js';

/** Finds records of a tenant by the names of their sources (the records from which they were made). @throws EtudeError MEMORY_UNAVAILABLE */
export interface LearnedRecords {
  /** The skills and episodes that have one of the names as a source (`RESTS_ON`), in no order. A record may come twice. */
  restingOn(tenant: string, names: readonly string[]): AsyncIterable<Skill | Episode>;
  /**
   * Replaces each current fact that has one of the names as a source by the result of `change`. If the result is null, the fact stays. If a fact
   * changed meanwhile, `change` is called again for it.
   */
  reviseFacts(tenant: string, names: readonly string[], change: (fact: Fact) => Fact | null): Promise<void>;
}

interface RevokeInput {
  readonly tenant: string;
  /** The name of the revoked record, of any owner, such as "tasks/{task}", "users/{user}" or "skills/{name}@{version}". */
  readonly source: string;
  readonly reason: string;
  readonly by: string;
  readonly dryRun: boolean;
  /** Whether copies promoted to all tenants are withdrawn too; for operators. Ignored for users, whose names other tenants may use too. */
  readonly global?: boolean;
  /** ms since 1970 */
  readonly at: number;
}

/**
 * Withdraws everything that rests on a source, which means that it was made from the source, directly or through other records:
 * - skills that name the source, with their callers, later versions and marked copies;
 * - records that were made while a withdrawn episode or skill was shown;
 * - facts without other support, and facts that were made where a revoked untrusted source was read.
 *
 * A withdrawn skill is archived and loses its proof. After a restore, it must be verified again. The answer lists the skills that this call or an
 * earlier call withdrew, callers first, and the texts of the withdrawn facts. A dry run gives the same answer and changes nothing.
 *
 * @throws EtudeError INVALID_ARGUMENT for an unknown kind of source, ABORTED if a skill was moved meanwhile, MEMORY_UNAVAILABLE
 */
export async function revokeSource(
  input: RevokeInput,
  deps: { readonly procedural: Pick<SkillRegistry, 'move'>; readonly learned: LearnedRecords },
): Promise<{ readonly skills: readonly Skill[]; readonly facts: readonly string[] }> {
  const { tenant, global = false, dryRun, by, at } = input;
  const source = requireSource(input.source);
  const tenants = global && source.kind !== 'users' ? [tenant, GLOBAL_TENANT] : [tenant];
  const tainted = await taintedBy(source, tenants, deps.learned);
  // Skills that an earlier call withdrew for this source are included, so that a repeated call gives the same answer. Archived skills with a
  // proof are included too, because they could be restored into use.
  const isMeant = ({ status, proof, history = [] }: Skill) =>
    status !== 'archived' || proof !== undefined || history.at(-1)?.reason.startsWith(becauseOf(input.source)) === true;
  const skills = callersFirst(tainted.skills.filter(isMeant));
  const facts = await withdrawFacts(tainted.names, input, deps.learned);
  const left = skills.filter(({ status, proof }) => status !== 'archived' || proof !== undefined);
  if (dryRun || left.length === 0) return { skills, facts };
  const reason = `${becauseOf(input.source)}${input.reason === '' ? '' : `: ${input.reason}`}`;
  const moves = left.map((skill) => moveOf(skill, 'archived', { by, reason, at }, { proof: null }));
  // Global skills call no skills of a tenant, so callers still move first.
  const moved: Skill[] = [];
  for (const one of tenants) moved.push(...(await deps.procedural.move(moves.filter(({ key }) => key.tenant === one))));
  return { skills: [...moved, ...skills.filter((skill) => !left.includes(skill))], facts };
}

function requireSource(name: string): Source {
  const source = sourceOf(name);
  if (source === null || source.kind === 'untrustedTasks' || source.kind === 'markedSkills') {
    const message = `${JSON.stringify(name.slice(0, 100))} is not a source; name a task, an episode, a document, a conversation, a fact, a procedure, a wanted skill, an import, a version of a skill or a user, such as "tasks/t0192f0c8a1b2".`;
    throw new EtudeError('INVALID_ARGUMENT', message, { field: 'source' });
  }
  return source;
}

const becauseOf = (source: string) => `its source ${source} was revoked`;

/** A record, with the names by which other records refer to it (`names`), and the names of its own sources (`restsOn`). */
interface Node {
  readonly owner: Scope;
  readonly names: readonly Name[];
  readonly restsOn: readonly string[];
}

/** A name of a record. If `seenIn` is given, only records of owners who can read `seenIn`'s records can mean the record by this name. */
interface Name {
  readonly name: string;
  readonly seenIn?: Scope;
}

/** Finds everything that rests on the source. Each step looks up the records that refer to the names of the step before, and adds their names. */
async function taintedBy(source: Source, tenants: readonly string[], learned: LearnedRecords) {
  const found = new Map<string, Skill | null>();
  const names = new Set<string>();
  for (let open = namesOfSource(source); open.length > 0;) {
    const isNew = open.filter(({ name }) => !names.has(name));
    const asked = Map.groupBy(isNew, ({ name }) => name);
    for (const { name, seenIn } of isNew) if (seenIn === undefined) names.add(name);
    open = [];
    for (const tenant of tenants)
      for await (const record of learned.restingOn(tenant, [...asked.keys()])) {
        const isEpisode = 'taskId' in record;
        const node = isEpisode ? nodeOfEpisode(record) : nodeOfSkill(record);
        const key = isEpisode ? record.id : versionKey(record);
        const isMeant = ({ seenIn }: Name) => seenIn === undefined || mayHaveSeen(node.owner, seenIn);
        if (found.has(key) || !node.restsOn.some((name) => asked.get(name)?.some(isMeant))) continue;
        found.set(key, isEpisode ? null : record);
        open.push(...node.names);
      }
  }
  const skills = [...found.values()].filter((skill) => skill !== null);
  return { names, skills: skills.toSorted((a, b) => (a.name === b.name ? a.version - b.version : a.name < b.name ? -1 : 1)) };
}

/** The names under which records refer to the source. If the source is a skill, the skills of all owners with this name are withdrawn. */
function namesOfSource({ kind, id }: Source): Name[] {
  if (kind === 'episodes') return namesOfEpisode(id);
  const name = `${kind}/${id}`;
  if (kind === 'tasks') return [{ name }, { name: `rolloutsOf/${id}` }];
  return kind === 'skills' ? [{ name }, { name: `itself/${id}` }] : [{ name }];
}

/** The names of an episode. All rollouts of a task count as one, because each may have learned from the others. */
function namesOfEpisode(id: string): Name[] {
  const rollout = rolloutOf(id);
  return [{ name: `episodes/${episodeKey(id)}` }, ...(rollout === null ? [] : [{ name: `tasks/${taskIdOf(rollout)}` }])];
}

function nodeOfEpisode({ id, taskId, scope, touched = [] }: Episode): Node {
  return {
    owner: scope,
    names: namesOfEpisode(id),
    restsOn: [`rolloutsOf/${taskId}`, `users/${scope.user}`, ...touched.flatMap(referencesOf)],
  };
}

/** The names of a record's sources, by which memory indexes the record. */
export const RESTS_ON = {
  skill: (skill: Skill) => nodeOfSkill(skill).restsOn,
  episode: (episode: Episode) => nodeOfEpisode(episode).restsOn,
  fact: ({ id, scope, episodes, touched = [] }: Fact) => [
    `facts/${id}`,
    `users/${scope.user}`,
    ...[...episodes, ...touched].flatMap(referencesOf),
  ],
};

/** A copy of marked code has `SAME_CODE_MARK`. Its later versions have other code, so they are found by a name that begins with "copies". */
function nodeOfSkill(skill: Skill): Node {
  const { scope, name, version, untrusted = [] } = skill;
  const id = `${name}@${version}`;
  const code = `code/${codeDigest(skill)}`;
  const copies = `copies/${versionKey({ ...skill, version: 0 })}`;
  const isCopy = untrusted.includes(SAME_CODE_MARK);
  return {
    owner: scope,
    names: [
      { name: `skills/${id}`, seenIn: scope },
      { name: `called/${versionKey(skill)}` },
      { name: code },
      ...(isCopy ? [{ name: copies }] : []),
    ],
    restsOn: [
      `itself/${id}`,
      `users/${scope.user}`,
      ...[...skill.sources, ...sourcesOfMarks(untrusted)].flatMap(referencesOf),
      ...calledVersions(skill).map((key) => `called/${key}`),
      ...(isCopy ? [code, copies] : []),
    ],
  };
}

/** The names of the records that a source means. Untrusted tasks and marked skills are kinds of their own. Facts name episodes only by id. */
function referencesOf(name: string): string[] {
  const source = sourceOf(name);
  if (source === null) return [`episodes/${name}`];
  if (source.kind === 'untrustedTasks') return [`tasks/${source.id}`];
  if (source.kind === 'markedSkills') return [`skills/${source.id}`];
  if (source.kind !== 'episodes') return [`${source.kind}/${source.id}`];
  const rollout = rolloutOf(source.id);
  return [`episodes/${episodeKey(source.id)}`, ...(rollout === null ? [] : [`rolloutsOf/${taskIdOf(rollout)}`])];
}

/** Whether `owner` may have read records of `seen`. A shared record keeps the sources of its original, which may belong to any agent. */
function mayHaveSeen(owner: Scope, seen: Scope): boolean {
  if (owner.tenant === GLOBAL_TENANT || owner.agent === TENANT_AGENT) return true;
  if (owner.agent === USER_AGENT) return seen.user === null || seen.user === owner.user;
  return isReadBy(seen, owner);
}

async function withdrawFacts(
  names: ReadonlySet<string>,
  { tenant, dryRun, at }: RevokeInput,
  learned: LearnedRecords,
): Promise<readonly string[]> {
  const texts = new Map<string, string>();
  await learned.reviseFacts(tenant, [...names], (fact) => {
    const left = fact.episodes.filter((one) => !referencesOf(one).some((name) => names.has(name)));
    const origins = [`facts/${fact.id}`, `users/${fact.scope.user}`, ...(fact.touched ?? []).flatMap(referencesOf)];
    const isMeant = origins.some((name) => names.has(name));
    const isGone = isMeant || (left.length === 0 && fact.episodes.length > 0);
    if (left.length === fact.episodes.length && !isGone) return null;
    if (isGone) texts.set(fact.id, fact.text);
    if (dryRun) return null;
    const support = Math.max(1, fact.support - (fact.episodes.length - left.length));
    return isGone ? { ...fact, validTo: at, updatedAt: at } : { ...fact, episodes: left, support, updatedAt: at };
  });
  return [...texts.values()];
}
