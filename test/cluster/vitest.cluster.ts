import { defineConfig, mergeConfig, type ViteUserConfig } from 'vitest/config';
import base from '../../vitest.base.js';

const here = new URL('.', import.meta.url).pathname;

/** A run of some specs with time for pods to start. Lists would be merged, and `include` names all that there is. */
function project(root: string, include: string, test: ViteUserConfig['test']) {
  const merged = mergeConfig(base, { root, test: { testTimeout: 300_000, hookTimeout: 300_000, ...test } });
  return defineConfig({ ...merged, test: { ...merged.test, include: [include], exclude: ['**/node_modules/**'] } });
}

/** What holds for every driver of sandboxes, in pods; the ordinary run has it in local processes. */
const pods = project(new URL('../../libs/sandbox', import.meta.url).pathname, 'test/conformance/**/*.int.spec.ts', {
  name: 'kubernetes',
  env: { ETUDE_TEST_SANDBOX_DRIVER: 'kubernetes' },
  globalSetup: [`${here}src/sandbox-namespace.ts`],
});

/** Specs that need a cluster. One file at a time: they share its node, and some break it. */
const clusterSpecs = project(here, 'src/**/*.cluster.spec.ts', { name: 'cluster' });

export default defineConfig({
  root: here,
  test: { projects: [pods, clusterSpecs], fileParallelism: false },
});
