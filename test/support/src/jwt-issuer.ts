import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** An issuer of JWTs of the tenant "acme", for a gateway that was started with `settings`. */
export function jwtIssuer() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    settings: (dir: string) => {
      const jwks = join(dir, 'jwks.json');
      writeFileSync(jwks, JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'EdDSA' }] }));
      return { ETUDE_JWT_ISSUER: 'https://id.example', ETUDE_JWT_AUDIENCE: 'etude', ETUDE_JWT_JWKS: jwks };
    },
    /** @param more claims to add to those of a user, or to replace them */
    token: (more: object): string => {
      const claims = { iss: 'https://id.example', aud: 'etude', tenant: 'acme', roles: ['user'], exp: Date.now() / 1_000 + 600, ...more };
      const text = `${encoded({ alg: 'EdDSA', kid: 'one' })}.${encoded(claims)}`;
      return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
    },
  };
}
