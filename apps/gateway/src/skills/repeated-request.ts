import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { claimRequest } from '@etude/memory/layers/request-claims';
import type { Memory } from '@etude/memory/memory';
import { optionalRequestId } from '../wire/resource-name.js';
import { versionsOf } from './skill-access.js';

export interface SkillRequest {
  /** Of the caller. */
  readonly tenant: string;
  /** As the caller sent it; empty is none. */
  readonly requestId: string;
  readonly method: string;
  /** Everything that was asked for. */
  readonly body: unknown;
}

/**
 * Whether this request came before, and which version of the skill was meant then.
 *
 * @throws EtudeError ALREADY_EXISTS where the request id was used for another request
 */
export async function claimSkillRequest(
  { store }: Pick<Memory, 'store'>,
  { tenant, requestId, method, body }: SkillRequest,
  { scope: { agent, user }, version }: Pick<Skill, 'scope' | 'version'>,
): Promise<{ readonly isRepeat: boolean; readonly version: number }> {
  const key = optionalRequestId(requestId);
  if (key === null) return { isRepeat: false, version };
  const digest = contentDigest({ method, body });
  const claim = {
    layer: 'procedural',
    scope: { tenant, agent, user },
    requestId: key,
    digest,
    at: Date.now(),
    note: String(version),
  } as const;
  const { isRepeat, note } = await claimRequest(store, claim);
  return { isRepeat, version: Number(note) || version };
}

export interface Deciding {
  readonly request: SkillRequest;
  readonly skill: Skill;
  /** Name of who decides. */
  readonly by: string;
  readonly to: readonly SkillStatus[];
}

/**
 * Decides once per request: a repeat acts on the version that was meant the first time, and answers how it is now where the first one
 * came to its end.
 */
export async function decideOnce(
  memory: { readonly store: Memory['store']; readonly procedural: ProceduralMemory },
  { request, skill, by, to }: Deciding,
  decide: (skill: Skill) => Promise<Skill>,
): Promise<Skill> {
  const { isRepeat, version } = await claimSkillRequest(memory, request, skill);
  if (!isRepeat) return decide(skill);
  const meant = (await versionsOf(memory.procedural, skill)).find((one) => one.version === version) ?? skill;
  const isDone = (meant.history ?? []).some((change) => change.by === by && to.includes(change.to));
  return isDone ? meant : decide(meant);
}
