import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.base.js';

/** Specs that need a cluster. One file at a time: they share its node, and some break it. */
export default mergeConfig(
  base,
  defineConfig({
    root: new URL('.', import.meta.url).pathname,
    test: {
      include: ['src/**/*.cluster.spec.ts'],
      fileParallelism: false,
      testTimeout: 120_000,
      hookTimeout: 120_000,
      exclude: ['**/node_modules/**'],
    },
  }),
);
