import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { readKeys } from '../stack/key-file.js';
import { createKey } from './keys.js';

function keysOf() {
  const home = mkdtempSync(join(tmpdir(), 'etude-home-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const cli = { home, out: { data: () => undefined, note: () => undefined } } as unknown as Cli;
  const create = (name: string) => createKey(cli, { tenant: 'acme', role: ['user'], name });
  return { create, names: () => readKeys(home).map(({ name }) => name) };
}

it('makes a key with the name that it is given', async () => {
  const { create, names } = keysOf();
  expect(await create('ann of verification')).toBe(EXIT.ok);
  expect(names()).toEqual(['ann of verification']);
});

it.each(['verification', ' Pruning'])('makes no key called %j, as a part of Etude is called', async (name) => {
  const { create, names } = keysOf();
  await expect(create(name)).rejects.toThrow(`--name ${name}: is how a part of Etude is called in histories`);
  expect(names()).toEqual([]);
});
