import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testFolder } from '@etude/test-support/test-folder';
import { beforeEach, expect, it } from 'vitest';
import { hasRole, loadKeys } from './auth.js';

const keySha256 = (key: string) => createHash('sha256').update(key).digest('hex');

let path = '';
const key = (name: string, tenant = 'acme', roles = ['user']) => ({ sha256: keySha256(name), tenant, roles, name });
const write = (...keys: object[]) => writeFileSync(path, JSON.stringify({ keys }));

beforeEach(() => void (path = join(testFolder(), 'keys.json')));

it('returns the identity of a key, and null for an unknown key', () => {
  write(key('a'), key('b', 'globex', ['operator']));
  const keys = loadKeys(path);
  expect(keys.authenticate('b')).toEqual({ tenant: 'globex', roles: ['operator'], name: 'b' });
  expect(keys.authenticate('c')).toBeNull();
});

it.each([
  ['acme', 'acme'],
  ['verification', 'tenant verification'],
])('names a nameless key by its tenant %s: %s', (tenant, name) => {
  write({ ...key('a', tenant), name: '' });
  expect(loadKeys(path).authenticate('a')?.name).toBe(name);
});

it.each(['verification', 'Pruning', ' architect', 'subject ada'])(
  'refuses the key name %j, which is a part of Etude or the subject of a JWT',
  (name) => {
    write({ ...key('a'), name });
    expect(() => loadKeys(path)).toThrow(
      /keys\.0\.name: .* is reserved, because histories use it for a part of Etude or the subject of a JWT; give the key another name/,
    );
  },
);

it.each([
  ['operator', 'reviewer', true],
  ['reviewer', 'reviewer', true],
  ['user', 'reviewer', false],
  ['reviewer', 'operator', false],
  ['operator', 'user', false],
] as const)('tells whether the role %s includes the role %s: %s', (held, role, isHeld) => {
  expect(hasRole([held], role)).toBe(isHeld);
});

it('refuses the hash of a key in place of the key', () => {
  write(key('a'));
  expect(loadKeys(path).authenticate(keySha256('a'))).toBeNull();
});

it('reads the file again when it changes, and holds no keys once it is removed', () => {
  write(key('a'));
  const keys = loadKeys(path);
  write(key('b'), key('c'));
  expect([keys.authenticate('a'), keys.authenticate('b')]).toEqual([null, { tenant: 'acme', roles: ['user'], name: 'b' }]);
  rmSync(path);
  expect(keys.authenticate('b')).toBeNull();
});

it('keeps the last good keys when the file stops parsing, and reports the error once', () => {
  write(key('a'));
  const reports: unknown[] = [];
  const keys = loadKeys(path, (error) => reports.push(error));
  writeFileSync(path, '{"keys": [');
  expect([keys.authenticate('a')?.tenant, keys.authenticate('a')?.tenant]).toEqual(['acme', 'acme']);
  expect(reports).toHaveLength(1);
});

it.each(['{', '{}', '{"keys":[{}]}', '{"keys":[{"sha256":"x","tenant":"a"}]}', '{"keys":[],"more":1}'])('refuses the file %s', (text) => {
  writeFileSync(path, text);
  expect(() => loadKeys(path)).toThrow(path);
});

it('refuses a missing file', () => {
  expect(() => loadKeys(path)).toThrow('ETUDE_AUTH_KEYS_PATH');
});
