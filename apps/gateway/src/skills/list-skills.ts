import { GLOBAL_TENANT, TENANT_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { type AskedSkills, viewsOf } from './skill-access.js';
import { ownerName } from './skill.mapping.js';

export interface SkillFilter {
  /** The newest version in this status; undefined: the version in use, else the newest, unless it is archived. */
  readonly status?: SkillStatus | undefined;
  /** With all below it. */
  readonly category?: string | undefined;
  /** All of them. */
  readonly tags: readonly string[];
}

/** Where a page ended. */
export interface ListPlace {
  readonly name: string;
  /** As `ownerName`. */
  readonly owner: string;
  /** Empty: nobody in particular. */
  readonly user: string;
}

const BATCH = 64;
/** Sorts before every owner's name. */
const BEFORE_ALL = '!';

export const placeOf = ({ name, scope }: Skill): ListPlace => ({ name, owner: ownerName(scope), user: scope.user ?? '' });

/**
 * Skills by name, from behind a place. Of equal names the narrowest owner's, where an agent asks; else every owner's.
 * Where no user is named and all may be seen, each user's is one of its own.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE
 */
export async function* everySkillBehind(
  procedural: ProceduralMemory,
  asked: AskedSkills,
  filter: SkillFilter,
  after: ListPlace | null,
): AsyncGenerator<Skill> {
  const isAgents = asked.agent !== null;
  const sources = viewsOf(asked).map((view) => behind(procedural, view, filter, { after, isAgents }));
  const heads = await Promise.all(sources.map((source) => source.next()));
  const advance = async (i: number) => void (heads[i] = await sources[i]!.next());
  let [last, from] = ['', -1];
  for (;;) {
    const waiting = heads.flatMap(({ done, value }, i) => (done ? [] : [{ i, skill: value }]));
    const first = waiting.toSorted((a, b) => compare(a.skill.name, b.skill.name) || a.i - b.i)[0];
    if (first === undefined) return;
    await advance(first.i);
    if (isAgents && first.skill.name === last && first.i !== from) continue;
    [last, from] = [first.skill.name, first.i];
    yield first.skill;
  }
}

const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);

/** What one owner, or every agent, has. */
async function* behind(
  procedural: ProceduralMemory,
  view: ReadScope,
  filter: SkillFilter,
  { after, isAgents }: { readonly after: ListPlace | null; readonly isAgents: boolean },
): AsyncGenerator<Skill, undefined> {
  const { status, category, tags } = filter;
  const isTagged = (skill: Skill) => tags.every((tag) => skill.tags.includes(tag));
  if (after !== null) yield* (await restOf(procedural, view, filter, after)).filter(isTagged);
  let from = after === null ? {} : isAgents ? { afterName: after.name } : startOf(view, after);
  for (;;) {
    const found = await procedural.list(view, { limit: BATCH, ...(status ? { status } : {}), ...(category ? { category } : {}), ...from });
    for (const newest of found) yield* (await linesOf(procedural, view, filter, newest)).filter(isTagged);
    const end = found.at(-1);
    if (end === undefined || found.length < BATCH) return;
    from = { afterName: end.name, afterAgent: end.scope.agent };
  }
}

/** What a listing shows of one owner's name: a line for each user where those of every user are seen. */
async function linesOf(procedural: ProceduralMemory, view: ReadScope, filter: SkillFilter, newest: Skill): Promise<readonly Skill[]> {
  const { status, category } = filter;
  if (view.user === null && newest.version > 1) return ofEachUser(procedural, newest.scope, newest.name, filter);
  const skill = status === undefined ? await shown(procedural, newest, category) : newest;
  return skill === null ? [] : [skill];
}

/** Of the name where a page ended, the users behind the last one. */
async function restOf(
  procedural: ProceduralMemory,
  view: ReadScope,
  filter: SkillFilter,
  { name, owner, user }: ListPlace,
): Promise<readonly Skill[]> {
  const agent = owner === GLOBAL_TENANT ? TENANT_AGENT : owner;
  const isIts = (owner === GLOBAL_TENANT) === (view.tenant === GLOBAL_TENANT) && (view.agent === null || view.agent === agent);
  if (view.user !== null || !isIts) return [];
  const lines = await ofEachUser(procedural, { tenant: view.tenant, agent }, name, filter);
  return lines.filter(({ scope }) => (scope.user ?? '') > user);
}

/** Each user's version in use, else their newest unless it is archived; nobody's first. With a status, their newest in it. */
async function ofEachUser(
  procedural: ProceduralMemory,
  { tenant, agent }: Pick<Scope, 'tenant' | 'agent'>,
  name: string,
  { status, category }: SkillFilter,
): Promise<readonly Skill[]> {
  const versions = (await procedural.versions({ tenant, agent }, name, status)).filter(
    (one) => status === undefined || isIn(category, one),
  );
  const each = [...Map.groupBy(versions, ({ scope }) => scope.user ?? '')].toSorted(([a], [b]) => compare(a, b));
  return each
    .flatMap(([, own]) => own.find((one) => one.status === 'active') ?? own[0] ?? [])
    .filter((one) => (status !== undefined || one.status !== 'archived') && isIn(category, one));
}

/** The version in use, where there is one: what waits, or was rolled back, changes nothing. null: the listing is not for it. */
async function shown(procedural: ProceduralMemory, newest: Skill, category: string | undefined): Promise<Skill | null> {
  const { scope, name, status } = newest;
  if (status === 'active') return newest;
  const active = await procedural.versions({ tenant: scope.tenant, agent: scope.agent }, name, 'active');
  const inUse =
    active.find((version) => version.scope.user === scope.user) ?? active.find((version) => version.scope.user === null) ?? newest;
  return inUse.status !== 'archived' && isIn(category, inUse) ? inUse : null;
}

const isIn = (category: string | undefined, skill: Skill) => category === undefined || `${skill.category}.`.startsWith(`${category}.`);

/** Of equal names everybody's come last. */
function startOf(view: ReadScope, { name, owner }: ListPlace): { afterName: string; afterAgent?: string } {
  const isGlobal = view.tenant === GLOBAL_TENANT;
  if (owner === GLOBAL_TENANT) return { afterName: name };
  return { afterName: name, afterAgent: isGlobal ? BEFORE_ALL : owner };
}
