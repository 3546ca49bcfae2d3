import { Buffer } from 'node:buffer';
import type { SandboxFile, SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator } from '@etude/contracts/task';
import { definedNames, definesName } from './answer-code.js';
import { continueStub, endsWithStub } from './function-stub.js';

type PythonTests = Extract<Evaluator, { kind: 'python_tests' }>;

/**
 * What the sandbox has to run to judge this code, one run per case.
 *
 * Expected outputs of `io_cases`, `function_cases` and `command` are in no run: the comparison is made by `judge`.
 */
export function planRuns(evaluator: Evaluator, code: string): SandboxRun[] {
  switch (evaluator.kind) {
    case 'io_cases':
      return evaluator.cases.map(({ stdin }) => ({ kind: 'program', code, stdin }));
    case 'function_cases':
      return evaluator.cases.map(({ args, kwargs }) => ({ kind: 'call', code, entryPoint: evaluator.entryPoint, args, kwargs }));
    case 'python_tests':
      return [planTests(evaluator, code)];
    case 'command':
      return [{ kind: 'command', command: evaluator.command, stdin: '' }];
    default:
      return [{ kind: 'program', code, stdin: '' }];
  }
}

/** Files that the runs need beside the task's own: a command finds the answer where the evaluator says. */
export function planFiles(evaluator: Evaluator, code: string): SandboxFile[] {
  if (evaluator.kind !== 'command') return [];
  return [{ path: evaluator.answerPath, contentBase64: Buffer.from(`${code}\n`, 'utf8').toString('base64') }];
}

/**
 * Whether the sandbox may leave out the cases after one that crashed or ran out of time or memory.
 * Such an answer is refused whatever they say, and a thousand cases that each time out would take hours.
 */
export function stopOnFailure(evaluator: Evaluator): boolean {
  return evaluator.kind === 'io_cases' || evaluator.kind === 'function_cases';
}

/**
 * An answer that defines the entry point stands on its own below the setup; one that doesn't is the body of the stub that the
 * setup ends with, if it ends with one. The stub itself goes with the answer, so that both texts are Python by themselves.
 */
function planTests({ entryPoint, setup, tests }: PythonTests, code: string): SandboxRun {
  const stub = endsWithStub(setup, entryPoint);
  const ground = stub ? stub.before : setup;
  const isBody = stub !== null && !definesName(code, entryPoint);
  const whole = ground === '' ? code : `\n\n${code}`;
  const answer = isBody ? `${stub.text}${continueStub(stub, code)}` : whole;
  return { kind: 'checked', setup: ground, code: answer, entryPoint, tests: callingCheck(tests, entryPoint) };
}

/** HumanEval's tests define `check(candidate)` and leave the call to the harness; uncalled they would pass anything. */
function callingCheck(tests: string, entryPoint: string): string {
  const defined = definedNames(tests).includes('check');
  return defined && !/^check\s*\(/m.test(tests) ? `${tests}\n\ncheck(${entryPoint})\n` : tests;
}
