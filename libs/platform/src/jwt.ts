import { readFileSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { TenantId, UserId } from '@etude/contracts/ids';
import { parsedJson } from '@etude/contracts/json';
import { isHttpsOrLoopback } from '@etude/contracts/outside-tools';
import { subjectName } from '@etude/contracts/skill-proof';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  decodeJwt,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { z } from 'zod';
import { type Identity, Role, tenantName } from './auth.js';
import { watchedFile } from './config.js';

const RolesOf = z.record(z.string(), Role);

/** Settings of callers with JWTs. Set the first three together, or none of them. */
export const jwtConfig = z.object({
  /** Issuer of the JWTs that callers may send instead of an API key. */
  ETUDE_JWT_ISSUER: z.string().min(1).optional(),
  /** Audience that a JWT must have, such as "etude". */
  ETUDE_JWT_AUDIENCE: z.string().min(1).optional(),
  /**
   * Public keys of the issuer: an https:// URL of a JWKS (http:// on a loopback address), or the path of a JWKS file. New keys need no
   * restart.
   */
  ETUDE_JWT_JWKS: z.string().min(1).optional(),
  /** Claim with the tenant. */
  ETUDE_JWT_TENANT_CLAIM: z.string().min(1).default('tenant'),
  /** Claim with the caller's name. Histories and the audit log show it as "subject NAME". */
  ETUDE_JWT_NAME_CLAIM: z.string().min(1).default('sub'),
  /** Claim with the end user for whom the caller acts. Unset: requests may name any user. */
  ETUDE_JWT_USER_CLAIM: z.string().min(1).optional(),
  /** Claim with the roles, as a list or as words separated by blanks. */
  ETUDE_JWT_ROLES_CLAIM: z.string().min(1).default('roles'),
  /** Maps values of the roles claim to roles, as a JSON object such as {"etude-admins": "operator"}. Other values are ignored. */
  ETUDE_JWT_ROLES: z
    .string()
    .default('{"user": "user", "reviewer": "reviewer", "operator": "operator"}')
    .transform(parsedJson)
    .pipe(RolesOf),
});
export type JwtConfig = z.infer<typeof jwtConfig>;

/** Only signatures with a key pair. With a shared secret, every service that checks tokens could also make tokens. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
const CLOCK_TOLERANCE_S = 30;
/** Shortest time between two fetches of the JWKS. A token with an unknown key id causes a fetch. */
const COOLDOWN_MS = 10_000;
const NAME_CHARS_MAX = 200;
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]*$/;

export interface TokenVerifier {
  /** The identity in a JWT; null for a text that isn't a JWT. @throws EtudeError UNAUTHENTICATED with the reason */
  verify(token: string): Promise<Identity | null>;
}

/** @returns null if no JWTs are accepted. @throws EtudeError FAILED_PRECONDITION for settings that don't fit together */
export function tokenVerifier(config: JwtConfig, report: (error: unknown) => void = () => undefined): TokenVerifier | null {
  const { ETUDE_JWT_ISSUER: issuer, ETUDE_JWT_AUDIENCE: audience, ETUDE_JWT_JWKS: jwks } = config;
  if (issuer === undefined && audience === undefined && jwks === undefined) return null;
  if (issuer === undefined || audience === undefined || jwks === undefined)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      'ETUDE_JWT_ISSUER, ETUDE_JWT_AUDIENCE and ETUDE_JWT_JWKS belong together. Set all three, or none.',
    );
  const keys = keySet(jwks, report);
  return {
    async verify(token) {
      if (!SHAPE.test(token)) return null;
      const checks = { issuer, audience, algorithms: ALGORITHMS, clockTolerance: CLOCK_TOLERANCE_S, requiredClaims: ['exp'] };
      const { payload } = await jwtVerify(token, keys, checks).catch((thrown: unknown) => {
        const error = isAway(thrown) && isOver(token) ? new errors.JWTExpired('', {}) : thrown;
        throw new EtudeError('UNAUTHENTICATED', `This JWT is refused: ${reasonOf(error)}.`, retryOf(error), { cause: error });
      });
      return identityOf(payload, config);
    },
  };
}

function keySet(jwks: string, report: (error: unknown) => void): JWTVerifyGetKey {
  if (/^https?:/i.test(jwks)) {
    const url = URL.parse(jwks);
    if (url === null || !isHttpsOrLoopback(url))
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `ETUDE_JWT_JWKS: ${jwks} must begin with https://, or with http:// on a loopback address. Otherwise somebody could replace the keys in transit and sign any token.`,
      );
    return createRemoteJWKSet(url, { cooldownDuration: COOLDOWN_MS });
  }
  const read = () => createLocalJWKSet(JSON.parse(readFileSync(jwks, 'utf8')) as JSONWebKeySet);
  try {
    const current = watchedFile(jwks, read, report);
    return (...asked) => current()(...asked);
  } catch (error) {
    throw new EtudeError('FAILED_PRECONDITION', `ETUDE_JWT_JWKS: ${jwks} isn't a file with a JWKS: ${(error as Error).message}.`);
  }
}

/** Whether the issuer's keys could not be fetched; a retry may help. */
const isAway = (error: unknown) => error instanceof errors.JWKSTimeout || !(error instanceof errors.JOSEError);

/** Whether a JWT says itself that it has expired. Reading the expiry needs no key of the issuer. */
function isOver(token: string): boolean {
  try {
    return (decodeJwt(token).exp ?? 0) + CLOCK_TOLERANCE_S <= Date.now() / 1_000;
  } catch {
    return true;
  }
}

const retryOf = (error: unknown) => (isAway(error) ? { retryAfterMs: COOLDOWN_MS } : {});

function reasonOf(error: unknown): string {
  if (isAway(error)) return "its issuer's keys can't be fetched now";
  if (error instanceof errors.JWTExpired) return 'it has expired';
  if (error instanceof errors.JWTClaimValidationFailed) return `its claim "${error.claim}" is missing or wrong`;
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its algorithm is not accepted; sign it with a key pair, such as RS256 or EdDSA';
  if (error instanceof errors.JWKSNoMatchingKey) return 'its key does not belong to the issuer';
  return 'its signature or its form is wrong';
}

function identityOf(payload: JWTPayload, config: JwtConfig): Identity {
  const named = <T>(name: string, type: z.ZodType<T>, what: string): T => {
    const read = type.safeParse(payload[name]);
    if (read.success) return read.data;
    throw new EtudeError('UNAUTHENTICATED', `This JWT is refused: its claim "${name}" isn't the name of ${what}.`);
  };
  const tenant = named(config.ETUDE_JWT_TENANT_CLAIM, TenantId, 'a tenant');
  const given = payload[config.ETUDE_JWT_ROLES_CLAIM];
  const words = Array.isArray(given) ? given.map(String) : typeof given === 'string' ? given.split(' ') : [];
  const roles = words.flatMap((word) => (Object.hasOwn(config.ETUDE_JWT_ROLES, word) ? [config.ETUDE_JWT_ROLES[word]!] : []));
  const said = payload[config.ETUDE_JWT_NAME_CLAIM];
  const name = typeof said === 'string' && said !== '' ? subjectName(said.slice(0, NAME_CHARS_MAX)) : tenantName(tenant);
  const identity = { tenant, roles: [...new Set(roles)], name };
  const { ETUDE_JWT_USER_CLAIM: ofUser } = config;
  if (ofUser === undefined || roles.some((role) => role !== 'user')) return identity;
  return { ...identity, user: named(ofUser, UserId, 'an end user') };
}
