import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testFolder } from '@etude/test-support/test-folder';
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isReservedName, isSystemActor } from '@etude/contracts/skill-proof';
import { jwtConfig, type TokenVerifier, tokenVerifier } from './jwt.js';

type Pair = Awaited<ReturnType<typeof pairOf>>;
async function pairOf(kid: string, alg = 'RS256') {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  return { kid, alg, publicKey, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
}

let served: readonly [Pair, Pair];
let fetches = 0;
let url: string;
const server = createServer((_request, response) => {
  fetches += 1;
  response.end(JSON.stringify({ keys: served.map(({ jwk }) => jwk) }));
});

beforeAll(async () => {
  served = [await pairOf('one'), await pairOf('curve', 'ES256')];
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
});
afterAll(() => server.close());

const settings = (more = {}) =>
  jwtConfig.parse({ ETUDE_JWT_ISSUER: 'https://id.example', ETUDE_JWT_AUDIENCE: 'etude', ETUDE_JWT_JWKS: url, ...more });
const verifier = (more = {}) => tokenVerifier(settings(more)) as TokenVerifier;

const CLAIMS = { tenant: 'acme', sub: 'ada', roles: ['user', 'reviewer', 'janitor'], iss: 'https://id.example', aud: 'etude' };
const seconds = (after: number) => Math.floor(Date.now() / 1_000) + after;
const signed = ({ kid, alg, privateKey }: Pair, claims: JWTPayload = {}) =>
  new SignJWT({ exp: seconds(60), ...CLAIMS, ...claims }).setProtectedHeader({ alg, kid }).sign(privateKey);

it('takes tenant, name and roles from a JWT of the issuer', async () => {
  for (const pair of served)
    expect(await verifier().verify(await signed(pair))).toEqual({ tenant: 'acme', name: 'subject ada', roles: ['user', 'reviewer'] });
  const mapped = verifier({
    ETUDE_JWT_TENANT_CLAIM: 'org',
    ETUDE_JWT_ROLES_CLAIM: 'scope',
    ETUDE_JWT_ROLES: '{"etude:admin": "operator"}',
  });
  const token = await signed(served[0], { org: 'globex', scope: 'openid etude:admin' });
  expect(await mapped.verify(token)).toEqual({ tenant: 'globex', name: 'subject ada', roles: ['operator'] });
});

it.each([
  ['has expired', { exp: seconds(-60) }, 'expired'],
  ['never expires', { exp: undefined }, '"exp"'],
  ['is not valid yet', { nbf: seconds(600) }, '"nbf"'],
  ['is for another audience', { aud: 'other' }, '"aud"'],
  ['is of another issuer', { iss: 'https://evil.example' }, '"iss"'],
  ['names no tenant', { tenant: undefined }, '"tenant"'],
  ['names an impossible tenant', { tenant: 'a/b' }, '"tenant"'],
])('refuses a JWT that %s', async (_, claims, reason) => {
  const verified = verifier().verify(await signed(served[0], claims));
  await expect(verified).rejects.toMatchObject({ code: 'UNAUTHENTICATED', message: expect.stringContaining(reason) as string });
});

it('refuses JWTs without a signature, with a shared secret, or by a stranger', async () => {
  const [one] = served;
  const unsigned = new UnsecuredJWT({ exp: seconds(60), ...CLAIMS }).encode();
  // A known attack signs a token with the public key as the shared secret.
  const secret = new TextEncoder().encode(await exportSPKI(one.publicKey));
  const shared = await new SignJWT({ exp: seconds(60), ...CLAIMS }).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(secret);
  const stranger = await signed({ ...(await pairOf('one')), kid: 'one' });
  for (const token of [unsigned, shared, stranger, `${(await signed(one)).slice(0, -4)}AAAA`])
    await expect(verifier().verify(token)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  expect(await verifier().verify('etude_an-api-key')).toBeNull();
});

it('takes new keys of the issuer without a restart', async () => {
  const running = verifier();
  await running.verify(await signed(served[0]));
  const before = fetches;
  await running.verify(await signed(served[0]));
  expect(fetches).toBe(before);
  const path = join(testFolder(), 'jwks.json');
  const write = (pairs: readonly Pair[]) => writeFileSync(path, JSON.stringify({ keys: pairs.map(({ jwk }) => jwk) }));
  write(served);
  const fromFile = verifier({ ETUDE_JWT_JWKS: path });
  const next = await pairOf('two');
  await expect(fromFile.verify(await signed(next))).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  write([next]);
  expect(await fromFile.verify(await signed(next))).toMatchObject({ tenant: 'acme' });
  await expect(fromFile.verify(await signed(served[0]))).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
});

it('says that the issuer can not be reached, and when to try again', async () => {
  const away = verifier({ ETUDE_JWT_JWKS: 'http://127.0.0.1:1/jwks' });
  const message = expect.stringContaining("can't be fetched") as string;
  await expect(away.verify(await signed(served[0]))).rejects.toMatchObject({ message, details: { retryAfterMs: 10_000 } });
});

it.each(['verification', 'person: ci', 'ci'])('gives the subject %s a name that no key can have', async (sub) => {
  const { name } = (await verifier().verify(await signed(served[0], { sub })))!;
  expect(name).toBe(`subject ${sub}`);
  expect([isReservedName(name), isSystemActor(name)]).toEqual([true, false]);
});

it.each(['http://id.example/jwks', 'HTTP://127.0.0.1.example/jwks', 'http://10.0.0.1/jwks', 'https://'])(
  'takes no keys from %s, where others could change them',
  (jwks) => {
    expect(() => tokenVerifier(settings({ ETUDE_JWT_JWKS: jwks }))).toThrow(
      'must begin with https://, or with http:// on a loopback address',
    );
  },
);

it('knows without the issuer that a JWT has expired', async () => {
  const away = verifier({ ETUDE_JWT_JWKS: 'http://127.0.0.1:1/jwks' });
  const refused = await away.verify(await signed(served[0], { exp: seconds(-31) })).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: 'UNAUTHENTICATED', message: expect.stringContaining('expired') as string, details: {} });
});

it('needs issuer, audience and keys together', () => {
  expect(tokenVerifier(jwtConfig.parse({}))).toBeNull();
  expect(() => tokenVerifier(jwtConfig.parse({ ETUDE_JWT_ISSUER: 'x' }))).toThrow('ETUDE_JWT_AUDIENCE');
  expect(() => tokenVerifier(settings({ ETUDE_JWT_JWKS: '/no/such/file' }))).toThrow('a file with a JWKS');
});
