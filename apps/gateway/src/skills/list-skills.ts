import { GLOBAL_TENANT, TENANT_AGENT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { type AskedSkills, viewsOf } from '../readers/readers.js';
import { ownerName } from '../readers/skill-message.js';

export interface SkillFilter {
  /** Lists the newest version with this status; undefined: the active version, or the newest unless it is archived. */
  readonly status?: SkillStatus | undefined;
  /** Includes all categories below it. */
  readonly category?: string | undefined;
  /** A skill must have all of them. */
  readonly tags: readonly string[];
}

/** The last skill of a page. */
export interface ListPlace {
  readonly name: string;
  /** The owner's name, made by `ownerName`. */
  readonly owner: string;
  /** Empty: no particular user. */
  readonly user: string;
}

const BATCH = 64;
/** Sorts before every owner's name. */
const BEFORE_ALL = '!';

export const placeOf = ({ name, scope }: Skill): ListPlace => ({ name, owner: ownerName(scope), user: scope.user ?? '' });

/**
 * Skills by name, starting after a place. An agent sees each name once, from its narrowest owner; otherwise all owners are listed.
 * If the caller may see all users and names none, each user's skill is listed separately.
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

type ListStart = Pick<Parameters<ProceduralMemory['list']>[1], 'afterName' | 'afterAgent' | 'afterUser'>;

/** The skills of one owner, or of all agents. */
async function* behind(
  procedural: ProceduralMemory,
  view: ReadScope,
  filter: SkillFilter,
  { after, isAgents }: { readonly after: ListPlace | null; readonly isAgents: boolean },
): AsyncGenerator<Skill, undefined> {
  const { status, category, tags } = filter;
  const isTagged = (skill: Skill) => tags.every((tag) => skill.tags.includes(tag));
  const linesOf = view.user === null ? eachShown : ownShown;
  let from: ListStart = after === null ? {} : startOf(view, after, isAgents);
  let together: Skill[] = [];
  for (;;) {
    const found = await procedural.list(view, { limit: BATCH, ...(status ? { status } : {}), ...(category ? { category } : {}), ...from });
    for (const newest of found) {
      const isNext = together.length > 0 && !isOfOneName(together[0], newest);
      if (isNext) yield* (await linesOf(procedural, together.splice(0), filter)).filter(isTagged);
      together.push(newest);
    }
    const end = found.at(-1);
    if (end === undefined || found.length < BATCH) break;
    from = { afterName: end.name, afterAgent: end.scope.agent, afterUser: end.scope.user };
  }
  yield* (await linesOf(procedural, together, filter)).filter(isTagged);
}

const isOfOneName = (a: Skill | undefined, b: Skill) => a?.name === b.name && a.scope.agent === b.scope.agent;

/** One entry per user. @param newest versions with one name, one per user, those without a user first */
async function eachShown(
  procedural: ProceduralMemory,
  newest: readonly Skill[],
  { status, category }: SkillFilter,
): Promise<readonly Skill[]> {
  const lines = await Promise.all(newest.map((one) => shown(procedural, one, { status, category })));
  return lines.filter((one) => one !== null);
}

/** One entry: active skills first, then the user's own before those without a user. */
async function ownShown(...given: Parameters<typeof eachShown>): Promise<readonly Skill[]> {
  const ownFirst = (await eachShown(...given)).toReversed();
  const line = ownFirst.find((one) => one.status === 'active') ?? ownFirst[0];
  return line === undefined ? [] : [line];
}

/** The active version if there is one: waiting or rolled-back versions change nothing. null: the filter excludes it. */
async function shown(
  procedural: ProceduralMemory,
  newest: Skill,
  { status, category }: Pick<SkillFilter, 'status' | 'category'>,
): Promise<Skill | null> {
  const { scope, name } = newest;
  if (status !== undefined || newest.status === 'active') return newest;
  const [inUse = newest] = await procedural.versions(scope, name, 'active');
  return inUse.status !== 'archived' && isIn(category, inUse) ? inUse : null;
}

const isIn = (category: string | undefined, skill: Skill) => category === undefined || `${skill.category}.`.startsWith(`${category}.`);

/** Where a view continues after a place. Among equal names, skills of all tenants come last. */
function startOf(view: ReadScope, { name, owner, user }: ListPlace, isAgents: boolean): ListStart {
  const agent = owner === GLOBAL_TENANT ? TENANT_AGENT : owner;
  const isGlobal = view.tenant === GLOBAL_TENANT;
  const isIts = isGlobal === (owner === GLOBAL_TENANT) && (view.agent === null || view.agent === agent);
  if (isIts) return { afterName: name, afterAgent: agent, ...(view.user === null ? { afterUser: user } : {}) };
  return { afterName: name, ...(isGlobal && !isAgents ? { afterAgent: BEFORE_ALL } : {}) };
}
