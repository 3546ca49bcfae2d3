import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { readKeys } from '../stack/key-file.js';
import { createKey } from './keys.js';

it.each(['verification', 'Skill-Architect', 'Pruning'])('makes a key called %j only where no part of Etude is called so', async (name) => {
  const home = mkdtempSync(join(tmpdir(), 'etude-home-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const cli = { home, out: { data: () => undefined, note: () => undefined } } as unknown as Cli;
  const made = createKey(cli, { tenant: 'acme', role: ['user'], name });
  if (name === 'Skill-Architect') expect([await made, readKeys(home).map((key) => key.name)]).toEqual([EXIT.ok, [name]]);
  else await expect(made).rejects.toThrow(`--name ${name}: is how a part of Etude is called in histories`);
});
