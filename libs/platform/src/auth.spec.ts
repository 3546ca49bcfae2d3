import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hasRole, loadKeys } from './auth.js';

const keySha256 = (key: string) => createHash('sha256').update(key).digest('hex');

let dir = '';
let path = '';
const key = (name: string, tenant = 'acme', roles = ['user']) => ({ sha256: keySha256(name), tenant, roles, name });
const write = (...keys: object[]) => writeFileSync(path, JSON.stringify({ keys }));

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'etude-keys-'));
  path = join(dir, 'keys.json');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it('knows whose key it is', () => {
  write(key('a'), key('b', 'globex', ['operator']));
  const keys = loadKeys(path);
  expect(keys.authenticate('b')).toEqual({ tenant: 'globex', roles: ['operator'], name: 'b' });
  expect(keys.authenticate('c')).toBeNull();
});

it('names a key without a name by its tenant', () => {
  write({ ...key('a'), name: '' });
  expect(loadKeys(path).authenticate('a')?.name).toBe('acme');
});

it.each(['verification', 'Pruning', ' architect', 'con-solidation', 'ｒｏｌｌｏｕｔ'])(
  'calls no key %j, as a part of Etude is called',
  (name) => {
    write({ ...key('a'), name });
    expect(() => loadKeys(path)).toThrow(/keys\.0\.name: .* is how a part of Etude is called in histories; give the key another name/);
  },
);

it('tells a tenant that is called like a part of Etude from it', () => {
  write({ ...key('a', 'verification'), name: '' });
  expect(loadKeys(path).authenticate('a')?.name).toBe('tenant verification');
});

it('lets an operator review, and a reviewer operate nothing', () => {
  expect([hasRole(['operator'], 'reviewer'), hasRole(['reviewer'], 'reviewer'), hasRole(['user'], 'reviewer')]).toEqual([
    true,
    true,
    false,
  ]);
  expect([hasRole(['reviewer'], 'operator'), hasRole(['reviewer'], 'user'), hasRole(['operator'], 'user')]).toEqual([false, false, false]);
});

it('takes no hash for a key', () => {
  write(key('a'));
  expect(loadKeys(path).authenticate(keySha256('a'))).toBeNull();
});

it('reads the file again when it changes', () => {
  write(key('a'));
  const keys = loadKeys(path);
  write(key('b'), key('c'));
  expect([keys.authenticate('a'), keys.authenticate('b')]).toEqual([null, { tenant: 'acme', roles: ['user'], name: 'b' }]);
});

it('holds no keys once the file is gone', () => {
  write(key('a'));
  const keys = loadKeys(path);
  rmSync(path);
  expect(keys.authenticate('a')).toBeNull();
});

it('keeps the last good keys of a file that stops parsing, and says so once', () => {
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

it('refuses a file that is not there', () => {
  expect(() => loadKeys(path)).toThrow('ETUDE_AUTH_KEYS_PATH');
});
