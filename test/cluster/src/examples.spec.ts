import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTemplates } from '@etude/sandbox/kubernetes/sandbox-template';
import { expect, it } from 'vitest';
import { root } from './settings.js';

const textOf = (path: string) => readFileSync(join(root, path), 'utf8');

it('has valid example templates', async () => {
  const { default: standard, ...others } = await readTemplates(join(root, 'k8s/templates.example.yaml'));
  expect(standard).toMatchObject({ cpuRequest: '50m', memoryMiB: 512, diskMiB: 128, warm: { free: 4, max: 24 } });
  expect(others).toEqual({});
});

it('allows skills the packages of the example templates', async () => {
  const templates = Object.entries(await readTemplates(join(root, 'k8s/templates-with-packages.example.yaml')));
  const having = templates.filter(([, { packages }]) => packages.length > 0).map(([name, { packages }]) => [name, packages]);
  expect(having).toHaveLength(1);
  expect(JSON.parse(textOf('k8s/sandbox-packages.example.json'))).toEqual(Object.fromEntries(having));
});

it('gives the controller all required settings and no unknown ones', () => {
  const known = `${textOf('apps/sandbox-controller/src/sandbox-controller.config.ts')}${textOf('libs/platform/src/config.ts')}`;
  const given = [...textOf('k8s/controller.example.yaml').matchAll(/- name: (ETUDE_\w+)/g)].map(([, name = '']) => name);
  expect(given.filter((name) => !new RegExp(`^ +${name}:`, 'm').test(known))).toEqual([]);
  expect(given).toEqual(
    expect.arrayContaining([
      'ETUDE_SANDBOX_DRIVER',
      'ETUDE_SANDBOX_NAMESPACE',
      'ETUDE_SANDBOX_TEMPLATES_PATH',
      'ETUDE_SANDBOX_TOKEN_SECRET',
      'ETUDE_SANDBOX_INTERNAL_TOKEN',
    ]),
  );
});

/** The file with the settings of each service. */
const CONFIGS: Readonly<Record<string, string>> = {
  gateway: 'apps/gateway/src/config/gateway-config.ts',
  'rollout-worker': 'apps/rollout-worker/src/rollout-worker.ts',
  'consolidation-worker': 'apps/consolidation-worker/src/consolidation-worker.config.ts',
};

/** The names of the settings that a service reads. */
async function settingsOf(app: string): Promise<ReadonlySet<string>> {
  const config = (await import(join(root, CONFIGS[app] ?? ''))) as Readonly<Record<string, { shape?: object }>>;
  return new Set(Object.values(config).flatMap(({ shape = {} }) => Object.keys(shape)));
}

it.each([
  ['gateway', 1],
  ['rollout-worker', 2],
  ['consolidation-worker', 3],
])('lists exactly the settings that the %s reads', async (app, column) => {
  const known = await settingsOf(app);
  const [, section = ''] = textOf('docs/kubernetes.md').split('## The other services');
  const rows = [...section.matchAll(/^\| (`.*)\|$/gm)].map(([, row = '']) => row.split(' | '));
  expect(rows.length).toBeGreaterThan(10);
  const named = rows.flatMap(([names = '', ...cells]) => {
    const told = cells[column - 1] !== 'no';
    return [...names.matchAll(/\b(?:ETUDE|OPENAI)_\w+/g)].map(([name]) => ({ name, told }));
  });
  const read = named.map(({ name }) => ({ name, told: known.has(name) }));
  expect(named).toEqual(read);
});
