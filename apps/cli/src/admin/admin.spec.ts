import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { etude } from '../../test/etude.js';
import { testFolder } from '@etude/test-support/test-folder';
import type { Cli } from '../cli.js';
import { keysPath, readKeys } from '../home/home.js';
import { settingsOf } from './admin.command.js';
import { createKey } from './keys.js';

describe('settingsOf', () => {
  it('reads settings by their field names', () => {
    const pairs = ['auto_register_skills=true', 'max_skills=20', 'approval_mode=threshold', 'skill_search_threshold=0.7'];
    const { agent, paths } = settingsOf(pairs);
    const settings = { autoRegisterSkills: true, maxSkills: 20, approvalMode: 'threshold', skillSearchThreshold: 0.7 };
    expect(agent).toMatchObject({ proceduralMemorySettings: settings });
    expect(paths).toEqual(pairs.map((pair) => `procedural_memory_settings.${pair.split('=', 1)[0]}`));
  });

  it('reads MCP servers from a file', () => {
    const path = join(testFolder(), 'servers.json');
    writeFileSync(path, '[{"name": "github", "url": "https://mcp.example.com", "timeout": "5s"}]');
    const { agent, paths } = settingsOf(['strategy=codeact', `mcp_servers=@${path}`]);
    expect(paths).toEqual(['strategy', 'mcp_servers']);
    expect(agent).toMatchObject({ strategy: 'codeact', mcpServers: [{ name: 'github', timeout: { seconds: 5n } }] });
    expect(() => settingsOf(['mcp_servers=github'])).toThrow('mcp_servers');
  });

  it.each(['maximum=2', 'enabled', 'enabled=maybe', 'max_skills=many', 'skill_search_threshold='])('refuses %s', (pair) => {
    expect(() => settingsOf([pair])).toThrow(pair.split('=', 1)[0]);
  });
});

it('makes a key with the given name, but refuses names of parts of Etude', async () => {
  const home = testFolder();
  const cli = { home, out: { data: () => undefined, note: () => undefined } } as unknown as Cli;
  const create = (name: string) => createKey(cli, { tenant: 'acme', role: ['user'], name });
  await create('ann of verification');
  for (const name of ['verification', ' Pruning']) await expect(create(name)).rejects.toThrow(`--name ${name}`);
  expect(readKeys(keysPath(home)).map(({ name }) => name)).toEqual(['ann of verification']);
});

it('rotates a key, whose predecessor expires, and revokes keys, in any key file', async () => {
  const file = join(testFolder(), 'team', 'keys.json');
  const run = (...words: string[]) => etude(['--json', 'keys', ...words, '--file', file]);
  await run('create', '--tenant', 'acme', '--role', 'reviewer', '--name', 'ci', '--expires', '90d');
  const { stdout } = await run('rotate', 'ci', '--grace', '1h');
  const [old, next] = readKeys(file);
  expect(old).toMatchObject({ name: 'ci (old)', tenant: 'acme', roles: ['reviewer'] });
  expect(Date.parse(old?.expires ?? '') - Date.now()).toBeLessThanOrEqual(3_600_000);
  expect(next).toEqual({
    name: 'ci',
    tenant: 'acme',
    roles: ['reviewer'],
    sha256: hash('sha256', (JSON.parse(stdout) as { key: string }).key),
  });
  expect((await run('revoke', 'nobody')).exit).toBe(3);
  await run('revoke', old?.sha256.slice(0, 12) ?? '');
  expect(readKeys(file)).toEqual([next]);
});
