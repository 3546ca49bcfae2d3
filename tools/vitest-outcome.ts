import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, SerializedError, TestModule, Vitest } from 'vitest/node';

const shortened = (path: string) => relative(process.cwd(), path);
/** The first line of the message, and the last line, in which a failed process states its reason. */
const reasonOf = ([error]: readonly SerializedError[] = []) => {
  const [first = '', ...others] = (error?.message ?? '').trim().split('\n');
  const last = others.at(-1)?.slice(0, 300);
  return [first, ...(last === undefined ? [] : [last])].join(' … ') || 'without a message';
};

/**
 * Writes the result of a run for `etude test` into the file of `--outputFile`: every test that did not pass, every file that failed outside
 * of its tests, and every error that no test waited for. Vitest's own JSON report leaves these errors out.
 */
export default class OutcomeReporter implements Reporter {
  #vitest!: Vitest;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(files: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const told = files.flatMap((file) => {
      const path = shortened(file.moduleId);
      const tests = [...file.children.allTests()].map((test) => ({ what: `${path}: ${test.fullName}`, ...test.result() }));
      const isBroken = file.state() === 'failed' && !tests.some(({ state }) => state === 'failed');
      return [...(isBroken ? [{ what: path, state: 'failed', errors: file.errors() }] : []), ...tests];
    });
    const stray = unhandled.map((error) => {
      const path = error['VITEST_TEST_PATH'];
      return { what: typeof path === 'string' ? shortened(path) : 'vitest', why: `outside of any test: ${reasonOf([error])}` };
    });
    const of = (state: string) => told.filter((one) => one.state === state);
    const outcome = {
      passed: of('passed').length,
      failed: [...of('failed').map(({ what, errors }) => ({ what, why: reasonOf(errors) })), ...stray],
      skipped: of('skipped').map(({ what }) => ({ what, why: 'by the test itself' })),
    };
    writeFileSync(this.#vitest.config.outputFile as string, JSON.stringify(outcome));
  }
}
