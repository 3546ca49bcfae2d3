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
    // These end what hangs and say nothing of speed: a machine with much else to do takes many times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
