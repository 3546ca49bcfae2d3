import { GLOBAL_TENANT, SkillName } from '@etude/contracts/ids';
import { Scope, type Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { claimRequest, earlierResult, noteResult, type RequestClaim } from '@etude/memory/layers/repeats';
import type { Memory } from '@etude/memory/memory';
import { z } from 'zod';
import { optionalRequestId } from '../wire/names.js';

export interface IdentifiedRequest {
  /** Of the caller. */
  readonly tenant: string;
  /** As the caller sent it; empty is none. */
  readonly requestId: string;
  readonly method: string;
  /** Everything that was asked for. */
  readonly body: unknown;
}

/** What is changed. */
export interface Changed {
  /** The owner of the records: claims are erased with them. */
  readonly scope: Omit<Scope, 'tenant'>;
  /** The version that is meant; absent: none. */
  readonly version?: number;
}

/** How the request came first. */
export interface FirstTime {
  /** It came before, and may have died on its way. */
  readonly isRepeat: boolean;
  /** The version that was meant then; 0: none. */
  readonly version: number;
  /** ms since 1970 */
  readonly at: number;
}

export interface Work<T> {
  /** Where the first call died on its way, its repeat does the rest. */
  readonly act: (first: FirstTime) => Promise<T>;
  /** What `again` has to know; null: a repeat does all of it again. */
  readonly resultOf: (done: T) => string | null;
  /** What came of it, as it is now; null where that is gone, and it is done anew. */
  readonly again: (result: string, first: FirstTime) => Promise<T | null>;
}

/**
 * Does the work of a request once. Its id is taken before anything is changed; a repeat of what came to its end changes nothing, whatever
 * others changed since.
 *
 * @throws EtudeError ALREADY_EXISTS where the request id was used for another request
 */
export async function once<T>(
  { store }: Pick<Memory, 'store'>,
  { tenant, requestId, method, body }: IdentifiedRequest,
  { scope: { agent, user }, version = 0 }: Changed,
  { act, resultOf, again }: Work<T>,
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
  const { isRepeat, note } = await claimRequest(store, claim);
  const [meant = '', when = ''] = note.split(' ');
  const first = { isRepeat, version: Number(meant) || version, at: Number(when) || at };
  const earlier = isRepeat ? await earlierResult(store, claim) : null;
  const known = earlier === null ? null : await again(earlier, first);
  if (known !== null) return known;
  const done = await act(first);
  const result = resultOf(done);
  if (result !== null) await noteResult(store, claim, { result });
  return done;
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
 * What comes of most requests: versions of skills, which a repeat answers as they are now.
 *
 * @param caller.tenant whose request it is
 */
export function versionsWork(
  procedural: ProceduralMemory,
  { tenant }: Pick<Scope, 'tenant'>,
): Pick<Work<readonly Skill[]>, 'resultOf' | 'again'> {
  return {
    resultOf: (skills) =>
      JSON.stringify(
        skills.map(({ scope: { agent, user, ...owner }, name, version }): z.infer<typeof Noted> => {
          return { isGlobal: owner.tenant === GLOBAL_TENANT, agent, user, name, version };
        }),
      ),
    again: async (result) => {
      const noted = z.array(Noted).parse([JSON.parse(result)].flat());
      const found = noted.map(async ({ isGlobal, agent, user, name, version }) => {
        const versions = await procedural.versions({ tenant: isGlobal ? GLOBAL_TENANT : tenant, agent, user }, name);
        return versions.find((one) => one.version === version) ?? [];
      });
      const skills = (await Promise.all(found)).flat();
      return skills.length === noted.length ? skills : null;
    },
  };
}

/** The same of one version. */
export function versionWork(procedural: ProceduralMemory, caller: Pick<Scope, 'tenant'>): Pick<Work<Skill>, 'resultOf' | 'again'> {
  const { resultOf, again } = versionsWork(procedural, caller);
  return { resultOf: (skill) => resultOf([skill]), again: async (...given) => (await again(...given))?.[0] ?? null };
}
