import { GLOBAL_TENANT, SkillName } from '@etude/contracts/ids';
import { Scope, type Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import { claimOnce, type ClaimedRequest, type IdentifiedRequest, once, type Work } from '../calls/claimed-request.js';
import { versionsOf } from './skill-access.js';

/** Without the tenant: notes are carried to other tenants by exports, and name nothing outside of their own. */
const Noted = z.strictObject({
  isGlobal: z.boolean(),
  agent: Scope.shape.agent,
  user: Scope.shape.user,
  name: SkillName,
  version: z.number().int(),
});

/**
 * What comes of most requests: one version of a skill, which a repeat answers as it is now.
 *
 * @param caller.tenant whose request it is
 */
export function versionWork(procedural: ProceduralMemory, { tenant }: Pick<Scope, 'tenant'>): Pick<Work<Skill>, 'resultOf' | 'again'> {
  return {
    resultOf: ({ scope: { agent, user, ...owner }, name, version }) =>
      JSON.stringify({ isGlobal: owner.tenant === GLOBAL_TENANT, agent, user, name, version } satisfies z.infer<typeof Noted>),
    again: async (result) => {
      const { isGlobal, agent, user, name, version } = Noted.parse(JSON.parse(result));
      const versions = await procedural.versions({ tenant: isGlobal ? GLOBAL_TENANT : tenant, agent, user }, name);
      return versions.find((one) => one.version === version) ?? null;
    },
  };
}

/** The version that was meant the first time: of a request that died on its way, "the newest" may be another one by now. */
export async function firstMeant(procedural: ProceduralMemory, { isRepeat, version }: ClaimedRequest, skill: Skill): Promise<Skill> {
  if (!isRepeat || version === skill.version) return skill;
  return (await versionsOf(procedural, skill)).find((one) => one.version === version) ?? skill;
}

export interface Deciding {
  readonly request: IdentifiedRequest;
  readonly skill: Skill;
  /** Name of who decides. */
  readonly by: string;
  /** ms since 1970 */
  readonly at: number;
  readonly to: readonly SkillStatus[];
}

/**
 * Decides once per request. A repeat of one that died on its way acts on the version that was meant the first time, as of then, and not
 * where its own change is there already: its own, and not merely one like it.
 */
export async function decideOnce(
  memory: { readonly store: Memory['store']; readonly procedural: ProceduralMemory },
  { request, skill, by, at: now, to }: Deciding,
  decide: (skill: Skill, at: number) => Promise<Skill>,
): Promise<Skill> {
  const claimed = await claimOnce(memory, request, skill, now);
  const { isRepeat, at } = claimed;
  const act = async () => {
    const meant = await firstMeant(memory.procedural, claimed, skill);
    const isDone = isRepeat && (meant.history ?? []).some((change) => change.at === at && change.by === by && to.includes(change.to));
    return isDone ? meant : decide(meant, at);
  };
  return once(claimed, { ...versionWork(memory.procedural, request), act });
}
