import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTemplates } from '@etude/sandbox/kubernetes/sandbox-template';
import { expect, it } from 'vitest';
import { root } from './settings.js';

const textOf = (path: string) => readFileSync(join(root, path), 'utf8');

it('has templates that a controller reads', async () => {
  const { default: standard, ...others } = await readTemplates(join(root, 'k8s/templates.example.yaml'));
  expect(standard).toMatchObject({ cpuRequest: '50m', memoryMiB: 512, diskMiB: 128, warm: { free: 4, max: 24 } });
  expect(others).toEqual({});
});

it('gives the controller settings that it knows, and all that it needs', () => {
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
