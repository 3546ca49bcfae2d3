import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
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
}

const BATCH = 64;
/** Sorts before every owner's name. */
const BEFORE_ALL = '!';

export const placeOf = ({ name, scope }: Skill): ListPlace => ({ name, owner: ownerName(scope) });

/**
 * Skills by name, from behind a place. Of equal names the narrowest owner's, where an agent asks; else every owner's.
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
  const sources = viewsOf(asked).map((view) => behind(procedural, view, filter, isAgents && after ? { name: after.name } : after));
  const heads = await Promise.all(sources.map((source) => source.next()));
  const advance = async (i: number) => void (heads[i] = await sources[i]!.next());
  let last = '';
  for (;;) {
    const waiting = heads.flatMap(({ done, value }, i) => (done ? [] : [{ i, skill: value }]));
    const first = waiting.toSorted((a, b) => compare(a.skill.name, b.skill.name) || a.i - b.i)[0];
    if (first === undefined) return;
    await advance(first.i);
    if (isAgents && first.skill.name === last) continue;
    last = first.skill.name;
    yield first.skill;
  }
}

const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1);

interface Behind {
  readonly name: string;
  readonly owner?: string;
}

/** What one owner, or every agent, has. */
async function* behind(
  procedural: ProceduralMemory,
  view: ReadScope,
  { status, category, tags }: SkillFilter,
  after: Behind | null,
): AsyncGenerator<Skill, undefined> {
  let from = after === null ? {} : startOf(view, after);
  for (;;) {
    const found = await procedural.list(view, { limit: BATCH, ...(status ? { status } : {}), ...(category ? { category } : {}), ...from });
    for (const newest of found) {
      const skill = status === undefined ? await shown(procedural, newest, category) : newest;
      if (skill !== null && tags.every((tag) => skill.tags.includes(tag))) yield skill;
    }
    const end = found.at(-1);
    if (end === undefined || found.length < BATCH) return;
    from = { afterName: end.name, afterAgent: end.scope.agent };
  }
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
function startOf(view: ReadScope, { name, owner }: Behind): { afterName: string; afterAgent?: string } {
  if (owner === undefined) return { afterName: name };
  const isGlobal = view.tenant === GLOBAL_TENANT;
  if (owner === GLOBAL_TENANT) return { afterName: name };
  return { afterName: name, afterAgent: isGlobal ? BEFORE_ALL : owner };
}
