import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defaultExclude, defineConfig } from 'vitest/config';

const conditions = ['@etude/source', 'node', 'default'];
/** Tests with real parts wait as much as they compute, so one more than there are processors. */
const maxWorkers = availableParallelism() + 1;

/** The tests of one package. Other packages of the workspace are read from `src` by the export condition; no build is needed to test. */
export const project = (root: string) => ({
  root,
  oxc: { decorator: { legacy: true, emitDecoratorMetadata: true } },
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: (JSON.parse(readFileSync(new URL(`${root}/package.json`, import.meta.url), 'utf8')) as { readonly name: string }).name,
    include: ['src/**/*.spec.ts', 'test/**/*.spec.ts'],
    // vitest.cluster.ts of test/cluster runs those.
    exclude: [...defaultExclude, '**/*.cluster.spec.ts'],
    setupFiles: [new URL('./vitest.setup.ts', import.meta.url).pathname],
    // Files that run after one another in a worker share what they import: a third less of processor time.
    isolate: false,
    // These end what hangs and say nothing of speed: a machine with much else to do takes many times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers,
  },
});

const packages = globSync(
  ['libs/*', 'apps/*', 'test/*', 'bench'].map((folder) => `${folder}/package.json`),
  {
    cwd: import.meta.dirname,
  },
).map((path) => path.replace('/package.json', ''));

/** Every package in one run. `vitest run libs/queue` runs the tests of one. */
export default defineConfig({ test: { projects: packages.toSorted().map(project), passWithNoTests: true, maxWorkers } });
