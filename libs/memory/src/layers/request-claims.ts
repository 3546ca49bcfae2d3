import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import type { RecordStore } from '../record-store.js';
import { markApplied } from './applied-marker.js';

/** Every claim's key starts so. */
export const REQUEST = 'request.';

export interface RequestClaim {
  readonly layer: MemoryLayer;
  /** Whose the record will be; the claim goes where it is erased with them. */
  readonly scope: Scope;
  /** Of the tenant, whichever of its agents and users used it. */
  readonly requestId: string;
  /** Of everything that makes the request, its owner included. */
  readonly digest: string;
  /** ms since 1970 */
  readonly at: number;
  /** What a repeat has to know of the first time, such as which version was meant. */
  readonly note?: string;
}

export interface ClaimedRequest {
  /** Somebody claimed the same before; whether they got to the end is what `earlierResult` says. */
  readonly isRepeat: boolean;
  /** Of the first claim. */
  readonly note: string;
}

/**
 * Takes a request id for one content of one owner, before anything is written; the same again may go on. Why before: of two that
 * come at once only one goes on, and nothing of the one that was there is read for the other.
 *
 * @throws EtudeError ALREADY_EXISTS where it was used for something else, or by somebody else
 */
export async function claimRequest(
  store: RecordStore,
  { layer, scope, requestId, digest, at, note = '' }: RequestClaim,
): Promise<ClaimedRequest> {
  const whole = requireScope(wholeTenant(scope));
  const change = markApplied(layer, scope, `${REQUEST}${requestId}`, at);
  const record = { ...change.record, sources: note === '' ? [digest] : [digest, note] };
  const [isTaken] = await store.write(scope.tenant, [{ ...change, record }]);
  if (isTaken) return { isRepeat: false, note };
  const [known] = await store.load(whole, layer, 'applied', [record.key]);
  if (known?.sources[0] === digest) return { isRepeat: true, note: known.sources[1] ?? '' };
  throw usedForAnother(requestId);
}

/**
 * What an earlier request with this id noted, without claiming it; null where there was none.
 *
 * @throws EtudeError ALREADY_EXISTS as `claimRequest`
 */
export async function earlierRequest(store: RecordStore, claim: RequestClaim): Promise<string | null> {
  const { layer, scope, requestId, digest, at } = claim;
  const { record } = markApplied(layer, scope, `${REQUEST}${requestId}`, at);
  const [known] = await store.load(requireScope(wholeTenant(scope)), layer, 'applied', [record.key]);
  if (known === undefined || known === null) return null;
  if (known.sources[0] !== digest) throw usedForAnother(requestId);
  return known.sources[1] ?? '';
}

/** Of a request that does several things, one of them; empty is all of it. No request id has a space in it, so no claim is called so. */
const resultKey = (requestId: string, part: string) => `${REQUEST}${requestId} ${part}`;

/**
 * Notes what a claimed request came to, once all of it is written. It stands beside the claim, so that of one that died on its way
 * there is none. What was noted first stays.
 */
export async function noteResult(
  store: RecordStore,
  { layer, scope, requestId, digest, at }: RequestClaim,
  { part = '', result }: { readonly part?: string; readonly result: string },
): Promise<void> {
  const change = markApplied(layer, scope, resultKey(requestId, part), at);
  await store.write(scope.tenant, [{ ...change, record: { ...change.record, sources: [digest, result] } }]);
}

/** What the request came to before; null where it has not come to its end. */
export async function earlierResult(store: RecordStore, claim: RequestClaim, part = ''): Promise<string | null> {
  const { layer, scope, requestId, digest, at } = claim;
  const { record } = markApplied(layer, scope, resultKey(requestId, part), at);
  const [known] = await store.load(requireScope(wholeTenant(scope)), layer, 'applied', [record.key]);
  return known?.sources[0] === digest ? (known.sources[1] ?? null) : null;
}

const usedForAnother = (requestId: string) =>
  new EtudeError(
    'ALREADY_EXISTS',
    `request_id "${requestId}" was used for another request in this tenant; use a new request_id for a new request`,
    { field: 'request_id' },
  );
