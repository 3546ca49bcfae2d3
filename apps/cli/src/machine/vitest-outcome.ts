import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/** One test, file or error, and why it was skipped or failed. */
export interface Told {
  readonly what: string;
  readonly why: string;
}

/** What one run of vitest came to. */
export interface Outcome {
  readonly passed: number;
  readonly failed: readonly Told[];
  readonly skipped: readonly Told[];
}

/** The parts of vitest's reports that are read here. */
interface Failure {
  readonly message: string;
  /** File that ran when an error came that no test caught. */
  readonly VITEST_TEST_PATH?: unknown;
}
interface TestResult {
  readonly state: string;
  readonly errors?: readonly Failure[] | undefined;
}
interface Test {
  readonly fullName: string;
  result(): TestResult;
}
interface TestFile {
  readonly moduleId: string;
  readonly children: { allTests(): Iterable<Test> };
  state(): string;
  errors(): readonly Failure[];
}

const reasonOf = ([error]: readonly Failure[] = []) => error?.message.trim().split('\n', 1)[0] || 'without a message';

/**
 * Names every test that did not pass, every file that failed outside of its tests, and every error that came while no test waited for it.
 *
 * @param root paths are told from here
 */
export function outcomeOf(root: string, files: readonly TestFile[], unhandled: readonly Failure[]): Outcome {
  const told = files.flatMap((file) => {
    const path = relative(root, file.moduleId);
    const tests = [...file.children.allTests()].map((test) => ({ what: `${path}: ${test.fullName}`, ...test.result() }));
    const isBroken = file.state() === 'failed' && !tests.some(({ state }) => state === 'failed');
    return [...(isBroken ? [{ what: path, state: 'failed', errors: file.errors() }] : []), ...tests];
  });
  const stray = unhandled.map((error) => {
    const { VITEST_TEST_PATH: path } = error;
    return { what: typeof path === 'string' ? relative(root, path) : 'vitest', why: `outside of any test: ${reasonOf([error])}` };
  });
  const failed = told.filter(({ state }) => state === 'failed').map(({ what, errors }) => ({ what, why: reasonOf(errors) }));
  const skipped = told
    .filter(({ state }) => !['passed', 'failed'].includes(state))
    .map(({ what }) => ({ what, why: 'by the test itself' }));
  return { passed: told.filter(({ state }) => state === 'passed').length, failed: [...failed, ...stray], skipped };
}

/** A reporter of vitest that writes the outcome, as JSON, to the file of `--outputFile`. */
export default class OutcomeReporter {
  #path = '';

  onInit({ config }: { readonly config: { readonly outputFile?: unknown } }): void {
    this.#path = String(config.outputFile);
  }

  onTestRunEnd(files: readonly TestFile[], unhandled: readonly Failure[]): void {
    writeFileSync(this.#path, JSON.stringify(outcomeOf(process.cwd(), files, unhandled)));
  }
}
