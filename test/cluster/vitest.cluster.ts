import { tmpdir } from 'node:os';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { project } from '../../vitest.config.js';

const here = new URL('.', import.meta.url).pathname;

function inCluster(root: string, include: string, { env, ...test }: NonNullable<ViteUserConfig['test']>) {
  const usual = project(root);
  const where = { include: [include], exclude: ['**/node_modules/**'], env: { TMPDIR: tmpdir(), ...env } };
  return { ...usual, root: new URL(`../../${root}`, import.meta.url).pathname, test: { ...usual.test, ...where, ...test } };
}

/** The conformance suite of sandbox drivers, run in pods. The ordinary run uses local processes. */
const pods = inCluster('libs/sandbox', 'test/conformance/**/*.int.spec.ts', {
  name: 'kubernetes',
  env: { ETUDE_TEST_SANDBOX_DRIVER: 'kubernetes' },
  globalSetup: [`${here}src/sandbox-namespace.ts`],
});

/** Specs that need a cluster, some of which build images first. Files run one at a time, because they share the cluster's node and some break it. */
const clusterSpecs = inCluster('test/cluster', 'src/**/*.cluster.spec.ts', { name: 'cluster', hookTimeout: 900_000 });

export default defineConfig({ root: here, test: { projects: [pods, clusterSpecs], fileParallelism: false } });
