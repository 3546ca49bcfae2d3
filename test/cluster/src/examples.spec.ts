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

/** The files with the settings of the services. */
const CONFIGS = [
  'apps/gateway/src/config/gateway-config.ts',
  'apps/rollout-worker/src/rollout-worker.ts',
  'apps/consolidation-worker/src/consolidation-worker.config.ts',
  'apps/sandbox-controller/src/sandbox-controller.config.ts',
];

it('sets only settings that a service reads', async () => {
  const configs = await Promise.all(
    CONFIGS.map((path) => import(join(root, path)) as Promise<Readonly<Record<string, { shape?: object }>>>),
  );
  const known = new Set(configs.flatMap(Object.values).flatMap(({ shape = {} }) => Object.keys(shape)));
  const named = [...textOf('helm/etude/templates/services.yaml').matchAll(/\b(?:ETUDE|OPENAI)_[A-Z_]+\b/g)].map(([name]) => name);
  const set = [...new Set(named)].filter((name) => !name.endsWith('_'));
  expect(set.length).toBeGreaterThan(15);
  expect(set.filter((name) => !known.has(name))).toEqual([]);
});
