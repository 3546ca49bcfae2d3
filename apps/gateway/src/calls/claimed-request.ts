import type { Scope } from '@etude/contracts/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { claimRequest, earlierResult, noteResult, type RequestClaim } from '@etude/memory/layers/repeats';
import type { Memory } from '@etude/memory/memory';
import { optionalRequestId } from '../wire/resource-name.js';

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
