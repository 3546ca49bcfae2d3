import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Cli } from '../cli.js';
import { readKeys } from '../home/home.js';
import { createKey } from './admin.command.js';
import { settingsOf } from './agents.command.js';

describe('settingsOf', () => {
  it('reads each by its name on the wire', () => {
    expect(
      settingsOf(['enabled=true', 'auto-register-skills=off', 'max_skills=20', 'approval_mode=threshold', 'skill_search_threshold=0.7']),
    ).toMatchObject({
      settings: { enabled: true, autoRegisterSkills: false, maxSkills: 20, approvalMode: 'threshold', skillSearchThreshold: 0.7 },
      paths: ['enabled', 'auto_register_skills', 'max_skills', 'approval_mode', 'skill_search_threshold'].map(
        (key) => `procedural_memory_settings.${key}`,
      ),
    });
  });

  it.each([
    ['a setting that it does not know', 'maximum=2', /is no setting/],
    ['what names no value', 'enabled', /is no setting/],
    ['what every object has', 'constructor=1', /is no setting/],
    ['a value that is none', 'enabled=maybe', /enabled must be true or false/],
    ['a number that is none', 'max_skills=many', /max_skills must be a number/],
    ['no number', 'skill_search_threshold=', /must be a number/],
  ])('refuses %s', (_what, pair, message) => {
    expect(() => settingsOf([pair])).toThrow(message);
  });
});

it('makes a key with the name that it is given, unless a part of Etude is called so', async () => {
  const home = mkdtempSync(join(tmpdir(), 'etude-home-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const cli = { home, out: { data: () => undefined, note: () => undefined } } as unknown as Cli;
  const create = (name: string) => createKey(cli, { tenant: 'acme', role: ['user'], name });
  await create('ann of verification');
  for (const name of ['verification', ' Pruning']) await expect(create(name)).rejects.toThrow(`--name ${name}`);
  expect(readKeys(home).map(({ name }) => name)).toEqual(['ann of verification']);
});
