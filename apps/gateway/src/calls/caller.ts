import { isDeepStrictEqual } from 'node:util';
import type { Duration } from '@bufbuild/protobuf/wkt';
import { EtudeError } from '@etude/contracts/errors';
import { millisecondsOf } from '@etude/contracts/wire/messages';
import { type Identity, type KeyChange, type KeyStore, loadKeys, tenantName } from '@etude/platform/auth';
import { type TokenVerifier, tokenVerifier } from '@etude/platform/jwt';
import type { AuditLog } from '@etude/queue/audit/audit-log';
import type { QueueLogger } from '@etude/queue/redis/redis';
import { invalidField } from '@etude/contracts/wire/validation';
import type { GatewayConfig } from '../config/gateway-config.js';

/** What a handler knows about a call besides its request. The tenant comes from here, never from the request. */
export interface CallContext extends Identity {
  /** Aborts when the caller cancels, its deadline passes, or this process shuts down. */
  readonly signal: AbortSignal;
  /** ms since 1970; Infinity without a deadline. */
  readonly deadlineMs: number;
  /** Makes `signal` abort with UNAUTHENTICATED once the caller's key or JWT is no longer valid. Returns a function that ends the checks. */
  readonly watchKey?: () => () => void;
  readonly traceparent?: string;
}

const KEY_CHECK_MS = 5_000;

const BEARER = /^Bearer +([^\s]+) *$/i;

/** Identifies callers by the `authorization` metadata alone: an API key or a JWT. */
export class Authenticator {
  constructor(
    private readonly keys: KeyStore | null,
    private readonly anonymousTenant: string | null,
    private readonly tokens: TokenVerifier | null = null,
  ) {}

  /** Without a key: the anonymous tenant with every role, if there is one. A wrong key is refused. @throws EtudeError UNAUTHENTICATED */
  async identify(authorization: readonly (string | Buffer)[]): Promise<Identity> {
    if (authorization.length === 0) return this.#anonymous();
    const [header] = authorization;
    const key = typeof header === 'string' && authorization.length === 1 ? BEARER.exec(header)?.[1] : undefined;
    if (key === undefined)
      throw new EtudeError('UNAUTHENTICATED', 'The metadata "authorization" must be given once, as "Bearer <key or JWT>".');
    const identity = this.keys?.authenticate(key) ?? (await this.tokens?.verify(key));
    if (!identity)
      throw new EtudeError('UNAUTHENTICATED', 'This API key is unknown. Use a key of this installation, or ask the operator for one.');
    return identity;
  }

  /**
   * Checks a key or JWT at intervals while a stream is open. Returns a function that ends the checks.
   *
   * @param onOver called once, with the error UNAUTHENTICATED, soon after the key was removed or changed, or the JWT expired
   */
  watch(authorization: readonly (string | Buffer)[], onOver: (error: unknown) => void): () => void {
    const opened = this.identify(authorization);
    opened.catch(() => undefined); // `requireSame` reports it
    const requireSame = async () => {
      if (isDeepStrictEqual(await this.identify(authorization), await opened)) return;
      throw new EtudeError('UNAUTHENTICATED', 'The tenant, roles or name of this API key have changed. Call again.');
    };
    const check = () =>
      requireSame().catch((error: unknown) => {
        // The issuer of JWTs may be unreachable for a while.
        if ((error as Partial<EtudeError>).details?.retryAfterMs !== undefined) return;
        clearInterval(timer);
        onOver(error);
      });
    const timer = setInterval(() => void check(), KEY_CHECK_MS).unref();
    return () => clearInterval(timer);
  }

  #anonymous(): Identity {
    if (this.anonymousTenant !== null)
      return { tenant: this.anonymousTenant, roles: ['user', 'reviewer', 'operator'], name: tenantName(this.anonymousTenant) };
    throw new EtudeError('UNAUTHENTICATED', 'This call carries no API key. Send the metadata "authorization: Bearer <key>".');
  }
}

const STANDARD_MS = 60_000;
const MAX_MS = 3_600_000;
/** How long before its deadline a wait ends, so that the caller gets the state of the task instead of DEADLINE_EXCEEDED. */
const DEADLINE_MARGIN_MS = 1_000;

/** How long to wait for a task, in ms. @param untilDeadlineMs Infinity without a deadline @throws EtudeError INVALID_ARGUMENT */
export function waitMs(timeout: Duration | undefined, untilDeadlineMs: number): number {
  const asked = millisecondsOf(timeout) ?? STANDARD_MS;
  if (asked <= 0 || asked > MAX_MS)
    throw invalidField('timeout', `must be more than 0 and at most ${MAX_MS / 1_000} s (0 means the default of ${STANDARD_MS / 1_000} s)`);
  const margin = Math.min(DEADLINE_MARGIN_MS, untilDeadlineMs / 10);
  return Math.max(0, Math.min(asked, untilDeadlineMs - margin));
}

/** Identifies callers by the key file and the JWT issuer of the settings. Changes of the key file go to the audit log. */
export function authenticatorFrom(config: GatewayConfig, logger: QueueLogger, audit: AuditLog): Authenticator {
  const { ETUDE_AUTH_KEYS_PATH: keys, ETUDE_AUTH_ANONYMOUS_TENANT: anonymous } = config;
  const report = (error: unknown) => logger.error({ err: error }, 'The key file is wrong. Its last valid keys stay in use');
  const onChange = ({ tenant, call, target, digest }: KeyChange) =>
    void audit
      .addOnce(digest, tenant, { actor: 'key file', roles: [], call, target, outcome: 'OK' })
      .catch((error: unknown) => logger.error({ err: error }, 'The audit log could not be written'));
  const tokens = tokenVerifier(config, (error) => logger.error({ err: error }, 'The JWKS is wrong. Its last valid keys stay in use'));
  return new Authenticator(keys === undefined ? null : loadKeys(keys, report, onChange), anonymous ?? null, tokens);
}
