import { describe, expect, it } from 'vitest';
import { findSecrets, maskSecrets, maskSecretsIn } from './find-secrets.js';

/** Keys are assembled here, so that no file of this repository holds a text that looks like a key. */
const RANDOM = 'a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ'.repeat(5);
const HEX = '0a1b2c3d4e5f6789'.repeat(4);
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const WEB_TOKEN = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: '1234567890' })}.${RANDOM.slice(0, 43)}`;
const pem = (kind: string, lines: number, end = '\n') =>
  [`-----BEGIN ${kind}-----`, ...Array.from({ length: lines }, () => RANDOM.slice(0, 64)), `-----END ${kind}-----`].join(end);

const SECRETS: Readonly<Record<string, string>> = {
  'an AWS key id': `AKIA${'QZ7XW4RT'.repeat(2)}`,
  'an AWS session key id': `ASIA${'QZ7XW4RT'.repeat(2)}`,
  'an AWS secret key': `aws_secret_access_key = ${RANDOM.slice(0, 40)}`,
  'an old OpenAI key': `sk-${RANDOM.slice(0, 48)}`,
  'an OpenAI project key': `sk-proj-${RANDOM.slice(0, 60)}`,
  'an Anthropic key': `sk-ant-api03-${RANDOM.slice(0, 93)}AA`,
  'an OpenRouter key': `sk-or-v1-${HEX}`,
  'an xAI key': `xai-${RANDOM.slice(0, 80)}`,
  'a GitHub token': `ghp_${RANDOM.slice(0, 36)}`,
  'a fine-grained GitHub token': `github_pat_${RANDOM.slice(0, 22)}_${RANDOM.slice(0, 59)}`,
  'a GitLab token': `glpat-${RANDOM.slice(0, 20)}`,
  'a Slack bot token': `xoxb-123456789012-1234567890123-${RANDOM.slice(0, 24)}`,
  'a Slack webhook': `https://hooks.slack.com/services/T0A1B2C3D/B0A1B2C3D/${RANDOM.slice(0, 24)}`,
  'a Google key': `AIzaSy${RANDOM.slice(0, 33)}`,
  'a Stripe key': `sk_live_${RANDOM.slice(0, 24)}`,
  'a SendGrid key': `SG.${RANDOM.slice(0, 22)}.${RANDOM.slice(0, 43)}`,
  'an npm token': `npm_${RANDOM.slice(0, 36)}`,
  'a PyPI token': `pypi-AgEIcHlwaS5vcmc${RANDOM.slice(0, 70)}`,
  'a Telegram bot token': `123456789:AA${RANDOM.slice(0, 33)}`,
  'a Twilio key': `SK${HEX.slice(0, 32)}`,
  'a DigitalOcean token': `dop_v1_${HEX}`,
  'an Azure storage key': `AccountKey=${Buffer.from(RANDOM.slice(0, 64)).toString('base64')};`,
  'a Vault token': `hvs.${RANDOM.slice(0, 95)}`,
  'a web token': WEB_TOKEN,
  'a bearer token': `Authorization: Bearer ${RANDOM.slice(0, 40)}`,
  'an RSA key': pem('RSA PRIVATE KEY', 10),
  'an encrypted RSA key': pem('RSA PRIVATE KEY', 10).replace('-----\n', '-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,AB\n\n'),
  'an OpenSSH key': pem('OPENSSH PRIVATE KEY', 6),
  'a PKCS 8 key as JSON': JSON.stringify({ private_key: pem('PRIVATE KEY', 10) }),
  'a PGP key': pem('PGP PRIVATE KEY BLOCK', 10),
  'a key cut off': pem('EC PRIVATE KEY', 3).slice(0, 150),
  'a database URL': `postgres://app:${RANDOM.slice(0, 9)}@db.intern:5432/app`,
  'a database URL of an example host': `postgres://app:${RANDOM.slice(0, 9)}@db-example:5432/xxxxxxxx`,
  'an OpenAI key after its name': `OPENAI_sk-proj-${RANDOM.slice(0, 60)}`,
  'a URL with a password': `https://bob:${RANDOM.slice(0, 9)}@git.intern.io/x`,
};

const LOOK_ALIKES = [
  'The staging deploy token is kqzvtkpwmnbx',
  '9ddeec69c5bd0e4f8a7b6c5d4e3f2a1b0c9d8e7f',
  `sha256:${HEX}`,
  '550e8400-e29b-41d4-a716-446655440000',
  'sk-550e8400-e29b-41d4-a716-446655440000',
  `key-${HEX.slice(0, 32)}`,
  `integrity sha512-${Buffer.from(RANDOM.slice(0, 64)).toString('base64')}`,
  Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 73 + 11) % 256)).toString('base64'),
  `data:image/png;base64,${Buffer.from(RANDOM).toString('base64')}`,
  'sk-xxxx',
  `sk-proj-${'x'.repeat(40)}`,
  `ghp_${'x'.repeat(36)}`,
  'AKIAIOSFODNN7EXAMPLE',
  `AKIA${'X'.repeat(16)}`,
  `MAKIA${'QZ7XW4RT'.repeat(2)}`,
  'OPENAI_API_KEY=sk-your-key-here-please-replace-it',
  'xoxb-your-token',
  `sk-${RANDOM.slice(0, 28)}`,
  `task-${RANDOM.slice(0, 40)}`,
  'sk-learn-pipeline-of-2024-with-many-named-steps',
  pem('PUBLIC KEY', 5),
  pem('CERTIFICATE', 12),
  'look for "-----BEGIN RSA PRIVATE KEY-----" in files',
  'eyJhbGciOi.eyJz.abc',
  'postgres://user:password@localhost:5432/db',
  'postgres://user:${PASSWORD}@host/db',
  'https://user:pass@example.com/',
  'arn:aws:iam::123456789012:role/x',
  'password = "hunter2"',
];

describe('a text with', () => {
  it.each(Object.entries(SECRETS))('%s has one secret, which is named and masked', (_, secret) => {
    const text = `first line\nuse ${secret} here`;
    const found = findSecrets(text);
    expect(found).toMatchObject([{ line: 2, severity: 'error', rule: expect.stringMatching(/^secret\//) }]);
    const shown = [JSON.stringify(found), maskSecrets(text)];
    const random = secret.match(/[\w+/]{8,}/g)!.findLast((run) => /\d/.test(run) && /[a-z]/i.test(run))!;
    for (const one of shown) expect(one).not.toContain(random);
    expect(maskSecrets(text)).toMatch(/^first line\nuse .*\[masked: [\w-]+\].* here$/s);
  });

  it.each(LOOK_ALIKES)('%s has none', (text) => {
    expect(findSecrets(`x ${text} y`)).toEqual([]);
    expect(maskSecrets(`x ${text} y`)).toBe(`x ${text} y`);
  });

  it('two secrets in one line has two', () => {
    const text = `${SECRETS['an npm token']} and ${SECRETS['a GitHub token']}`;
    expect(maskSecrets(text)).toBe('[masked: npm] and [masked: github]');
  });

  it.each(['# secretlint-disable\n', '# SecretLint-Disable-next-line\n'])('the comment %j has its secret all the same', (comment) => {
    expect(findSecrets(`${comment}${SECRETS['a GitHub token']}`)).toHaveLength(1);
  });
});

it('masks the texts inside of a value, and keeps all else', () => {
  const value = { code: `k = "${SECRETS['a GitHub token']}"`, n: 1, none: null, list: [true, { at: WEB_TOKEN }] };
  expect(maskSecretsIn(value)).toEqual({ code: 'k = "[masked: github]"', n: 1, none: null, list: [true, { at: '[masked: web-token]' }] });
});

it.each(['a', '-', '/', '\n', ' ', 'sk-', 'eyJ.', '://a:', 'aws=', '{', '-----BEGIN RSA PRIVATE KEY-----', 'a:b@c ', 'bearer ', '\\n'])(
  'reads 200,000 characters of %j in a moment',
  (unit) => {
    expect(findSecrets(unit.repeat(200_000 / unit.length))).toEqual([]);
  },
);
