import { EtudeError } from '@etude/contracts/errors';
import type { Identity } from '@etude/platform/auth';
import type { Bound, CallRule } from './roles.js';

/**
 * Makes a request one of the end user that the caller is bound to, if it is bound.
 *
 * @throws EtudeError PERMISSION_DENIED for another user, and for calls that reach more than one user's data
 */
export function bindToUser<R extends object>(request: R, caller: Pick<Identity, 'user'>, { bound }: CallRule): R {
  const { user } = caller;
  if (bound === undefined) requireUnbound(caller);
  if (user === undefined || bound === undefined || bound === 'own' || bound === 'open') return request;
  const holder = holderOf(request, bound);
  if (holder?.user === '') holder.user = user;
  if (holder === null || holder.user === user) return request;
  throw new EtudeError(
    'PERMISSION_DENIED',
    `Your JWT is bound to one user. Set ${bound.replace(/^(part|whose)\./, '')} to that user, or leave it empty.`,
  );
}

/** For what has no user, such as worlds. @throws EtudeError PERMISSION_DENIED for a caller that is bound to an end user */
export function requireUnbound({ user }: Pick<Identity, 'user'>): void {
  if (user === undefined) return;
  const message =
    'This call reaches data of all users, and yours is bound to one user by its JWT. It needs a key, or a JWT with the role "reviewer".';
  throw new EtudeError('PERMISSION_DENIED', message);
}

type Holder = Partial<Record<string, unknown>>;

/** The message with the user; null for one that can't name a user. */
function holderOf(request: object, bound: Bound): { user?: unknown } | null {
  const { spec, skill, part, whose } = request as Record<string, Holder | undefined>;
  if (bound === 'user') return request;
  if (bound === 'spec.user') return spec ?? null;
  if (bound === 'skill.user') return skill ?? null;
  if (bound === 'whose.user') return { user: whose?.['case'] === 'user' ? whose['value'] : undefined };
  return part?.['case'] === 'head' ? (part['value'] as Holder) : null;
}

/** A caller that is bound to an end user changes only records of that user. @throws EtudeError PERMISSION_DENIED */
export function requireOwnRecord({ user }: Pick<Identity, 'user'>, owner: { readonly user: string | null } | undefined): void {
  if (user === undefined || owner === undefined || owner.user === user) return;
  throw new EtudeError(
    'PERMISSION_DENIED',
    'It belongs to the whole tenant, and your JWT is bound to one user. It needs a key, or a JWT with the role "reviewer".',
  );
}
