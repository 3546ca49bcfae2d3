import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { type AskedSkills, ownerName, viewsOf } from './readers.js';

interface SkillFilter {
  /** Lists the newest version with this status; undefined: the active version, or the newest unless it is archived. */
  readonly status?: SkillStatus | undefined;
  /** Includes all categories below it. */
  readonly category?: string | undefined;
  /** A skill must have all of them. */
  readonly tags: readonly string[];
}

/** The place of a skill in a list: "name/owner/user". The user is empty for a skill without a user. */
export const placeOf = ({ name, scope }: Skill) => `${name}/${ownerName(scope)}/${scope.user ?? ''}`;

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
  after: string | null,
): AsyncGenerator<Skill> {
  const [nameAfter] = after?.split('/') ?? [];
  const views = viewsOf(asked);
  const sources = views.map((view) => names(procedural, view, filter, nameAfter));
  const heads = await Promise.all(sources.map((source) => source.next()));
  for (;;) {
    const [name] = heads.flatMap(({ done, value }) => (done ? [] : value[0]!.name)).toSorted();
    if (name === undefined) return;
    const found: Array<readonly Skill[]> = [];
    for (const [i, { done, value }] of heads.entries()) {
      if (done || value[0]?.name !== name) continue;
      found.push(linesOf(views[i]!, value, filter));
      heads[i] = await sources[i]!.next();
    }
    const lines = asked.agent === null ? found.flat() : (found.find((ofOwner) => ofOwner.length > 0) ?? []);
    // If no skill is at the place `after` any more, the list continues with the next name.
    const at = lines.findIndex((skill) => placeOf(skill) === after);
    if (name !== nameAfter) yield* lines;
    else if (at >= 0) yield* lines.slice(at + 1);
  }
}

/** All versions that a view sees, name by name. */
async function* names(
  procedural: ProceduralMemory,
  view: ReadScope,
  { status }: SkillFilter,
  fromName?: string,
): AsyncGenerator<readonly Skill[], undefined> {
  let versions: Skill[] = [];
  for await (const skill of procedural.every(view, status && [status], fromName)) {
    if (versions.length > 0 && versions[0]?.name !== skill.name) yield versions.splice(0);
    versions.push(skill);
  }
  if (versions.length > 0) yield versions;
}

/**
 * The lines of one name: one for each agent and user. A reader with a user sees one line for each agent: an active skill if there is one,
 * else the user's own skill, else a skill without a user.
 */
function linesOf({ user }: ReadScope, versions: readonly Skill[], filter: SkillFilter): readonly Skill[] {
  const ofOwners = [...Map.groupBy(versions, ({ scope }) => `${scope.agent} ${scope.user ?? ''}`).values()];
  const shown = ofOwners.flatMap((ofOwner) => shownOf(ofOwner, filter) ?? []);
  const ofAgents = [...Map.groupBy(shown, ({ scope }) => scope.agent).values()];
  const lines = user === null ? shown : ofAgents.flatMap((own) => own.findLast(({ status }) => status === 'active') ?? own.at(-1) ?? []);
  return lines.filter((skill) => filter.tags.every((tag) => skill.tags.includes(tag)));
}

/** The active version, else the newest. null: the filter excludes it. */
function shownOf(versions: readonly Skill[], { status, category }: SkillFilter): Skill | null {
  const shown = versions.findLast((one) => one.status === 'active') ?? versions.at(-1) ?? null;
  const isOut = shown === null || (status === undefined && shown.status === 'archived');
  return isOut || (category !== undefined && !`${shown.category}.`.startsWith(`${category}.`)) ? null : shown;
}
