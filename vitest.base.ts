import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const conditions = ['@etude/source', 'node', 'default'];

/** Workspace packages are read from `src` through the custom export condition; no build is needed to test. */
export default defineConfig({
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    environment: 'node',
    include: ['src/**/*.spec.ts', 'test/**/*.spec.ts'],
    setupFiles: [new URL('./vitest.setup.ts', import.meta.url).pathname],
    passWithNoTests: true,
    // Files that run after one another in a worker share what they import: a third less of processor time.
    isolate: false,
    // Tests with real parts wait as much as they compute, so one more than there are processors.
    maxWorkers: availableParallelism() + 1,
    // These end what hangs and say nothing of speed: a machine with much else to do takes many times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
