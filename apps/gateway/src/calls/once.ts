import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { claimRequest, noteResult, type RequestClaim } from '@etude/memory/layers/repeats';
import type { Memory } from '@etude/memory/memory';
import { optionalRequestId } from '../wire/names.js';

interface IdentifiedRequest {
  readonly tenant: string;
  /** As sent by the caller; empty: none. */
  readonly requestId: string;
  readonly method: string;
  /** The whole request. A repeat must have the same body. */
  readonly body: unknown;
}

export interface Changed {
  /** The owner of the records. Erasing the owner also erases the request id. */
  readonly scope: Omit<Scope, 'tenant'>;
  readonly version?: number;
}

export interface FirstTime {
  /** An earlier call had this request id, and may have failed midway. */
  readonly isRepeat: boolean;
  /** The version that the first call chose; 0: none. */
  readonly version: number;
  /** Time of the first call, in ms since 1970. */
  readonly at: number;
}

export interface Work<T> {
  /** Does the work. If the first call failed midway, does only the missing part. */
  readonly act: (first: FirstTime) => Promise<T>;
  /** The result to store for `again`; null: a repeat does everything again. Default: ''. */
  readonly resultOf?: (done: T) => string | null;
  /** The current state of the first call's result; null: it no longer exists, and the work is done again. Default: null. */
  readonly again?: (result: string, first: FirstTime) => Promise<T | null>;
}

/**
 * Does the work of a request once. The request id is claimed before any change.
 * A repeat of a completed request changes nothing, even if the records have changed since.
 *
 * @throws EtudeError ALREADY_EXISTS if the request id was used for another request
 */
export async function once<T>(
  { store }: Pick<Memory, 'store'>,
  { tenant, requestId, method, body }: IdentifiedRequest,
  { scope: { agent, user }, version = 0 }: Changed,
  { act, resultOf = () => '', again = async () => null }: Work<T>,
): Promise<T> {
  const key = optionalRequestId(requestId);
  const at = Date.now();
  if (key === null) return act({ isRepeat: false, version, at });
  const digest = contentDigest({ method, body });
  const claim: RequestClaim = {
    layer: 'procedural',
    scope: { tenant, agent, user },
    requestId: key,
    digest,
    at,
    note: `${version} ${at}`,
  };
  const { isRepeat, note, result: earlier } = await claimRequest(store, claim);
  const [meant = '', when = ''] = note.split(' ');
  const first = { isRepeat, version: Number(meant) || version, at: Number(when) || at };
  const known = earlier === null ? null : await again(earlier, first);
  if (known !== null) return known;
  const done = await act(first);
  const result = resultOf(done);
  if (result !== null) await noteResult(store, claim, result);
  return done;
}

/** Stored without a tenant, because exports may carry the result to another tenant. */
interface Noted extends Pick<Scope, 'agent' | 'user'>, Pick<Skill, 'name' | 'version'> {
  readonly isGlobal: boolean;
}

/** `resultOf` and `again` for requests that result in versions of skills. A repeat returns their current state. */
export function versionsWork(
  procedural: ProceduralMemory,
  { tenant }: Pick<Scope, 'tenant'>,
): Required<Pick<Work<readonly Skill[]>, 'resultOf' | 'again'>> {
  return {
    resultOf: (skills) =>
      JSON.stringify(
        skills.map(({ scope: { agent, user, ...owner }, name, version }): Noted => {
          return { isGlobal: owner.tenant === GLOBAL_TENANT, agent, user, name, version };
        }),
      ),
    again: async (result) => {
      const noted = JSON.parse(result) as readonly Noted[];
      const found = noted.map(async ({ isGlobal, agent, user, name, version }) => {
        const versions = await procedural.versions({ tenant: isGlobal ? GLOBAL_TENANT : tenant, agent, user }, name);
        return versions.find((one) => one.version === version) ?? [];
      });
      const skills = (await Promise.all(found)).flat();
      return skills.length === noted.length ? skills : null;
    },
  };
}

/** Like `versionsWork`, for a single version. */
export function versionWork(procedural: ProceduralMemory, caller: Pick<Scope, 'tenant'>): Pick<Work<Skill>, 'resultOf' | 'again'> {
  const { resultOf, again } = versionsWork(procedural, caller);
  return { resultOf: (skill) => resultOf([skill]), again: async (...given) => (await again(...given))?.[0] ?? null };
}
