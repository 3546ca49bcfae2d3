import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Every package in one run, each with the configuration in its own folder. */
export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: { projects: ['libs/*', 'apps/*', 'test/*', 'bench'], passWithNoTests: true, maxWorkers: availableParallelism() + 1 },
});
