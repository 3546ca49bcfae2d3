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
 * Whether this request came before, which version of the skill was meant then, and when.
 *
 * @throws EtudeError ALREADY_EXISTS where the request id was used for another request
 */
export async function claimSkillRequest(
  { store }: Pick<Memory, 'store'>,
  { tenant, requestId, method, body }: SkillRequest,
  { scope: { agent, user }, version }: Pick<Skill, 'scope' | 'version'>,
  at = Date.now(),
): Promise<{ readonly isRepeat: boolean; readonly version: number; readonly at: number }> {
  const key = optionalRequestId(requestId);
  if (key === null) return { isRepeat: false, version, at };
  const digest = contentDigest({ method, body });
  const claim = {
    layer: 'procedural',
    scope: { tenant, agent, user },
    requestId: key,
    digest,
    at,
    note: `${version} ${at}`,
  } as const;
  const { isRepeat, note } = await claimRequest(store, claim);
  const [first = '', when = ''] = note.split(' ');
  return { isRepeat, version: Number(first) || version, at: Number(when) || at };
}

export interface Deciding {
  readonly request: SkillRequest;
  readonly skill: Skill;
  /** Name of who decides. */
  readonly by: string;
  /** ms since 1970 */
  readonly at: number;
  readonly to: readonly SkillStatus[];
}

/**
 * Decides once per request: a repeat acts on the version that was meant the first time, as of then, and answers how it is now where
 * this request came to its end: its own change is there, and not merely one like it.
 */
export async function decideOnce(
  memory: { readonly store: Memory['store']; readonly procedural: ProceduralMemory },
  { request, skill, by, at: now, to }: Deciding,
  decide: (skill: Skill, at: number) => Promise<Skill>,
): Promise<Skill> {
  const { isRepeat, version, at } = await claimSkillRequest(memory, request, skill, now);
  if (!isRepeat) return decide(skill, at);
  const meant = (await versionsOf(memory.procedural, skill)).find((one) => one.version === version) ?? skill;
  const isDone = (meant.history ?? []).some((change) => change.at === at && change.by === by && to.includes(change.to));
  return isDone ? meant : decide(meant, at);
}
