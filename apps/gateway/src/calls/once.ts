import { GLOBAL_TENANT, SkillName } from '@etude/contracts/ids';
import { Scope, type Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { claimRequest, earlierResult, noteResult, type RequestClaim } from '@etude/memory/layers/repeats';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import { optionalRequestId } from '../wire/names.js';

type Store = Memory['store'];

export interface IdentifiedRequest {
  /** Of the caller. */
  readonly tenant: string;
  /** As the caller sent it; empty is none. */
  readonly requestId: string;
  readonly method: string;
  /** Everything that was asked for. */
  readonly body: unknown;
}

export interface ClaimedRequest {
  /** It came before; whether it came to its end is what `once` finds out. */
  readonly isRepeat: boolean;
  /** The version that was meant the first time; 0 where none was. */
  readonly version: number;
  /** Of the first time, ms since 1970. */
  readonly at: number;
  /** Where it says what it came to; null for one without a request id, which nothing repeats. */
  readonly noted: { readonly store: Store; readonly claim: RequestClaim } | null;
}

/**
 * Takes the request id before anything is changed.
 *
 * @param owner whose records will be changed; claims are erased with them
 * @param at now, ms since 1970
 * @throws EtudeError ALREADY_EXISTS where the request id was used for another request
 */
export async function claimOnce(
  { store }: { readonly store: Store },
  { tenant, requestId, method, body }: IdentifiedRequest,
  { scope: { agent, user }, version = 0 }: { readonly scope: Omit<Scope, 'tenant'>; readonly version?: number },
  at = Date.now(),
): Promise<ClaimedRequest> {
  const key = optionalRequestId(requestId);
  if (key === null) return { isRepeat: false, version, at, noted: null };
  const digest = contentDigest({ method, body });
  const scope = { tenant, agent, user };
  const claim: RequestClaim = { layer: 'procedural', scope, requestId: key, digest, at, note: `${version} ${at}` };
  const { isRepeat, note } = await claimRequest(store, claim);
  const [first = '', when = ''] = note.split(' ');
  return { isRepeat, version: Number(first) || version, at: Number(when) || at, noted: { store, claim } };
}

export interface Work<T> {
  /** Of a request that does several things, the one that this is. */
  readonly part?: string;
  /** Where the first call died on its way, its repeat does the rest. */
  readonly act: () => Promise<T>;
  /** What `again` has to know, in up to 1,000 characters. */
  readonly resultOf: (done: T) => string;
  /** What came of it, as it is now; null where that is gone, and it is done anew. */
  readonly again: (result: string) => Promise<T | null>;
}

/** Does the work of a request once: a repeat of what came to its end changes nothing, whatever others changed since. */
export async function once<T>(claimed: ClaimedRequest, { part = '', act, resultOf, again }: Work<T>): Promise<T> {
  const known = await answeredBefore(claimed, { part, again });
  if (known !== null) return known;
  const done = await act();
  if (claimed.noted !== null) await noteResult(claimed.noted.store, claimed.noted.claim, { part, result: resultOf(done) });
  return done;
}

/** What came of it before, as it is now; null where it has not come to its end. */
export async function answeredBefore<T>(
  { isRepeat, noted }: ClaimedRequest,
  { part = '', again }: Pick<Work<T>, 'part' | 'again'>,
): Promise<T | null> {
  if (!isRepeat || noted === null) return null;
  const result = await earlierResult(noted.store, noted.claim, part);
  return result === null ? null : again(result);
}

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
  return (await procedural.versions(skill.scope, skill.name)).find((one) => one.version === version) ?? skill;
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
