import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Cli } from '../cli.js';
import { EXIT } from '../errors.js';
import { readKeys } from '../home/home.js';
import { createKey } from './admin.command.js';

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
  await expect(create(name)).rejects.toThrow(`--name ${name}: histories name a part of Etude so`);
  expect(names()).toEqual([]);
});
