import { EtudeError } from '@etude/contracts/errors';
import { type Identity, type KeyStore, tenantName } from '@etude/platform/auth';

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
