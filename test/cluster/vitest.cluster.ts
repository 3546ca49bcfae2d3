import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.base.js';

const here = new URL('.', import.meta.url).pathname;
const conformance = { include: ['src/conformance/**/*.int.spec.ts'], exclude: ['**/node_modules/**'], testTimeout: 120_000, hookTimeout: 120_000 };

/** What holds for every driver of sandboxes, once for each of them; `conformance-table.ts` lays them side by side. */
const driverUnderTest = (driver: 'local' | 'kubernetes') =>
  mergeConfig(
    base,
    defineConfig({
      root: new URL('../../libs/sandbox', import.meta.url).pathname,
      test: {
        ...conformance,
        name: driver,
        env: { ETUDE_TEST_SANDBOX_DRIVER: driver },
        ...(driver === 'kubernetes' ? { globalSetup: [`${here}src/sandbox-namespace.ts`] } : {}),
      },
    }),
  );

/** Specs that need a cluster. One file at a time: they share its node, and some break it. */
const clusterSpecs = mergeConfig(
  base,
  defineConfig({
    root: here,
    test: {
      name: 'cluster',
      include: ['src/**/*.cluster.spec.ts'],
      testTimeout: 120_000,
      hookTimeout: 120_000,
      exclude: ['**/node_modules/**'],
    },
  }),
);

export default defineConfig({
  root: here,
  test: { projects: [driverUnderTest('local'), driverUnderTest('kubernetes'), clusterSpecs], fileParallelism: false },
});
