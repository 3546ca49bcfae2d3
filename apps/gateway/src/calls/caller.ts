import type { Duration } from '@bufbuild/protobuf/wkt';
import { EtudeError } from '@etude/contracts/errors';
import { millisecondsOf } from '@etude/contracts/sandbox-wire';
import { type Identity, type KeyStore, tenantName } from '@etude/platform/auth';
import { invalidField } from '../wire/validation.js';

/** What a handler knows of its caller beyond the request. `tenant` is the only source of a tenant. */
export interface CallContext extends Identity {
  /** Aborts when the caller is gone, its deadline is over, or this process shuts down. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970; Infinity where the caller set none. */
  readonly deadlineMs: number;
}

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Identifies callers by the `authorization` metadata alone. */
export class Authenticator {
  constructor(
    private readonly keys: KeyStore | null,
    private readonly anonymousTenant: string | null,
  ) {}

  /**
   * A call without a key belongs to the anonymous tenant, with every role, where that is set. A wrong key is refused even then.
   *
   * @throws EtudeError UNAUTHENTICATED
   */
  identify(authorization: readonly (string | Buffer)[]): Identity {
    if (authorization.length === 0) return this.#anonymous();
    const [header] = authorization;
    const key = typeof header === 'string' && authorization.length === 1 ? BEARER.exec(header)?.[1] : undefined;
    if (key === undefined) throw new EtudeError('UNAUTHENTICATED', 'The metadata "authorization" must be "Bearer <key>", once.');
    const identity = this.keys?.authenticate(key);
    if (!identity)
      throw new EtudeError('UNAUTHENTICATED', 'This API key is not known here. Use one of this installation, or ask its operator for one.');
    return identity;
  }

  #anonymous(): Identity {
    if (this.anonymousTenant !== null)
      return { tenant: this.anonymousTenant, roles: ['user', 'reviewer', 'operator'], name: tenantName(this.anonymousTenant) };
    throw new EtudeError('UNAUTHENTICATED', 'This call carries no API key. Send the metadata "authorization: Bearer <key>".');
  }
}

const STANDARD_MS = 60_000;
const MAX_MS = 3_600_000;
/** The part of a deadline that is left for the answer to arrive, on a busy machine too; of short ones, a tenth. */
const DEADLINE_MARGIN_MS = 1_000;

/**
 * How long to wait for a task, in ms: what was asked for, but never past the call's deadline, so that the caller gets
 * the task as it stands and no DEADLINE_EXCEEDED.
 *
 * @param untilDeadlineMs Infinity where there is none
 * @throws EtudeError INVALID_ARGUMENT
 */
export function waitMs(timeout: Duration | undefined, untilDeadlineMs: number): number {
  const asked = millisecondsOf(timeout) ?? STANDARD_MS;
  if (asked <= 0 || asked > MAX_MS)
    throw invalidField('timeout', `must be more than 0 and at most ${MAX_MS / 1_000} s (0 means the default of ${STANDARD_MS / 1_000} s)`);
  const margin = Math.min(DEADLINE_MARGIN_MS, untilDeadlineMs / 10);
  return Math.max(0, Math.min(asked, untilDeadlineMs - margin));
}
