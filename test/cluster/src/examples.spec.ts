import { globSync, readFileSync } from 'node:fs';
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

interface LockedPackage {
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly dev?: boolean;
}

it('has every package with machine code of the image for arm64 too', () => {
  const { packages } = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, LockedPackage> };
  const production = Object.entries(packages).filter(([, { dev, os }]) => !dev && os?.includes('linux'));
  const named = (cpu: string) => production.filter(([, one]) => one.cpu?.includes(cpu)).map(([name]) => name.replace(`-${cpu}`, ''));
  expect(named('x64')).toContain('node_modules/node-linux');
  expect(named('arm64')).toEqual(named('x64'));
  for (const cpu of ['x64', 'arm64'])
    expect(globSync(`node_modules/onnxruntime-node/bin/*/linux/${cpu}/libonnxruntime.so.1`, { cwd: root })).toHaveLength(1);
  const built = ['docker/services.Dockerfile', 'docker/sandbox.Dockerfile', 'docker/production-files.mjs'].map(textOf).join('');
  expect(built).not.toMatch(/x64|x86[_-]64|amd64/);
});
