import { tmpdir } from 'node:os';
import { defineConfig, mergeConfig, type ViteUserConfig } from 'vitest/config';
import base from '../../vitest.base.js';

const here = new URL('.', import.meta.url).pathname;

/** A project with timeouts long enough for the start of pods and, before the first test, the build of images. `include` is set after the merge, because a merge joins lists. */
function project(root: string, include: string, test: ViteUserConfig['test']) {
  const merged = mergeConfig(base, {
    root,
    test: { testTimeout: 300_000, hookTimeout: 900_000, ...test, env: { TMPDIR: tmpdir(), ...test?.env } },
  });
  return defineConfig({ ...merged, test: { ...merged.test, include: [include], exclude: ['**/node_modules/**'] } });
}

/** The conformance suite of sandbox drivers, run in pods. The ordinary run uses local processes. */
const pods = project(new URL('../../libs/sandbox', import.meta.url).pathname, 'test/conformance/**/*.int.spec.ts', {
  name: 'kubernetes',
  env: { ETUDE_TEST_SANDBOX_DRIVER: 'kubernetes' },
  globalSetup: [`${here}src/sandbox-namespace.ts`],
});

/** Specs that need a cluster. One file at a time: they share its node, and some break it. */
const clusterSpecs = project(here, 'src/**/*.cluster.spec.ts', { name: 'cluster' });

export default defineConfig({ root: here, test: { projects: [pods, clusterSpecs], fileParallelism: false } });
