import { inSentences } from '@etude/contracts/wire/validation';
import type { Evaluator } from '@etude/contracts/task';
import { EtudeError } from '@etude/contracts/errors';
import { crashOutcome, cutMiddle, type EvaluatorRules, type namedKind, PASSED, shown, streams } from './evaluator.js';
import { acceptedOutputs, callable, functionCases, ioCases, kattisOutput } from './case-evaluators.js';
import { Buffer } from 'node:buffer';
import { sameOutput } from './compare.js';
import { definedNames, definesName } from './answer-code.js';

/** For tasks without an evaluator. Every program that runs to its end is accepted, and its output is the answer. */
const NONE: EvaluatorRules = {
  plan: (code) => [{ kind: 'program', code, stdin: '' }],
  outcome: (run, _at, code) => crashOutcome(run, code) ?? { verdict: 'AC', how: 'ran to its end' },
  praise: (run) => ['The code ran to its end.', ...streams(run)].join('\n'),
  expectation: () => 'A complete program. What it prints is the final answer to the task.',
  visible: '',
  adapt: ({ entryPoint }) => (entryPoint === null ? null : 'needs_arguments'),
};

const NAMED: Readonly<Partial<Record<string, ReturnType<typeof namedKind>>>> = {
  accepted_outputs: acceptedOutputs,
  kattis_output: kattisOutput,
};

const EVALUATORS: { readonly [Kind in Evaluator['kind']]: (evaluator: Extract<Evaluator, { kind: Kind }>) => EvaluatorRules } = {
  io_cases: ioCases,
  function_cases: functionCases,
  python_tests: pythonTests,
  command,
  none: () => NONE,
  named: ({ name, spec }) => {
    const rules = NAMED[name]?.rules(spec);
    if (rules === undefined)
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `This release has no evaluator ${JSON.stringify(name)}. Its evaluators are ${Object.keys(NAMED).join(', ')}.`,
      );
    return { ...rules, visible: [name, rules.visible] };
  },
};

export function rulesOf(evaluator: Evaluator): EvaluatorRules {
  return (EVALUATORS[evaluator.kind] as (given: Evaluator) => EvaluatorRules)(evaluator);
}

/** The invalid fields of a named evaluator, each with its path. Empty for other kinds of evaluators, which the schema of tasks checks. */
export function evaluatorProblems(
  evaluator: Evaluator,
): ReadonlyArray<{ readonly path: readonly PropertyKey[]; readonly message: string }> {
  if (evaluator.kind !== 'named') return [];
  const kind = NAMED[evaluator.name];
  if (kind === undefined) return [{ path: ['name'], message: `must be one of ${Object.keys(NAMED).join(', ')}` }];
  const { error } = kind.spec.safeParse(evaluator.spec, { error: inSentences });
  return (error?.issues ?? []).map(({ path, message }) => ({ path: ['spec', ...path], message }));
}

const TOLERANCE = 1e-6;

/** Saves the answer as a file and runs a command. The answer passes if the exit code is right, and the output too if one is expected. */
function command(evaluator: Extract<Evaluator, { kind: 'command' }>): EvaluatorRules {
  const { command: line, answerPath, expectedExitCode, expectedStdout, comparison } = evaluator;
  return {
    plan: () => [{ kind: 'command', command: line, stdin: '' }],
    files: (code) => [{ path: answerPath, contentBase64: Buffer.from(`${code}\n`, 'utf8').toString('base64') }],
    outcome(run) {
      if (run.exit === 'signal') return { verdict: 'RE', how: `the command was killed by signal ${run.signal}` };
      const { exitCode } = run;
      // An exit code of null means that the command never exited. It must not count as 0.
      if (exitCode === null) return crashOutcome(run, '') ?? { verdict: 'RE', how: 'the command did not exit' };
      if (exitCode !== expectedExitCode)
        return { verdict: exitCode === 0 ? 'WA' : 'RE', how: `the command exited with ${exitCode}, not ${expectedExitCode}` };
      const isSame = expectedStdout === undefined || sameOutput(run.stdout, expectedStdout, comparison, TOLERANCE);
      return isSame ? PASSED : { verdict: 'WA', how: "the command's output is not the expected one" };
    },
    expectation: ({ block }) =>
      `Your code is saved as \`${answerPath}\`. Then this command is run and must exit with ${expectedExitCode}:\n${block('command', line)}`,
    visible: [line, answerPath, expectedExitCode],
    adapt: ({ entryPoint, code }) => (entryPoint === null ? { code } : 'needs_arguments'),
  };
}

const TESTS_CHARS_MAX = 12_000;

/** Runs the caller's tests, which call the answer. Tests and answer run in separate processes. */
function pythonTests(evaluator: Extract<Evaluator, { kind: 'python_tests' }>): EvaluatorRules {
  const { entryPoint, setup, tests, public: isPublic } = evaluator;
  const stub = stubIn(setup, entryPoint);
  return {
    entryPoint,
    /**
     * An answer that defines the entry point is run after the setup. Any other answer is the body of the unfinished function (the stub) at the
     * setup's end. The stub then moves from the setup to the answer, so that setup and answer are both valid Python.
     */
    plan(code) {
      const ground = stub?.before ?? setup;
      const isBody = stub !== null && !definesName(code, entryPoint);
      const whole = ground === '' ? code : `\n\n${code}`;
      const answer = isBody ? `${stub.text}${indented(code)}\n` : whole;
      return [{ kind: 'checked', setup: ground, code: answer, entryPoint, tests: callingCheck(tests, entryPoint) }];
    },
    outcome(run, _at, code) {
      if (run.exit === 'ok' && run.passed === true) return PASSED;
      if (run.error?.type === 'AssertionError') return { verdict: 'WA', how: 'an assertion of the tests failed' };
      return crashOutcome(run, code) ?? { verdict: 'WA', how: 'the tests did not run to their end' };
    },
    feedback(how, run) {
      if (!isPublic) return `The hidden tests failed: ${how}`;
      const message = run.error?.message ? [`${run.error.type}: ${shown(run.error.message)}`] : [];
      return [`The tests failed: ${how}`, ...message, ...streams(run)].join('\n');
    },
    expectation({ prompt, block }) {
      const lines = [`Code that defines \`${entryPoint}\` at its top level. Tests call it.`];
      if (setup.trim() !== '') {
        const isShown = prompt.includes(setup.trim());
        lines.push(
          isShown
            ? 'The code in the task is already in place before yours.'
            : `This code is already in place before yours:\n${block('setup', setup)}`,
        );
      }
      if (stub) lines.push('Repeat the whole function, or answer with its indented body alone.');
      if (isPublic) lines.push(`The tests:\n${block('tests', cutMiddle(tests, TESTS_CHARS_MAX))}`);
      return lines.join('\n');
    },
    visible: [setup, isPublic ? tests : ''],
    adapt: (skill) => callable(entryPoint, skill),
    tests: [{ kind: 'python', setup, tests }],
  };
}

/** Splits a setup that ends inside the function `entryPoint`, as setups of HumanEval do, before this function. null for any other setup. */
function stubIn(setup: string, entryPoint: string): { readonly before: string; readonly text: string } | null {
  const head = new RegExp(`^(?:@.*\\n)*(?:async[ \\t]+)?def[ \\t]+${entryPoint}[ \\t]*\\(`, 'm').exec(setup);
  if (head === null) return null;
  const withoutDocstrings = setup.slice(head.index + head[0].length).replaceAll(/("""|''')[^]*?\1/g, '""');
  if (/\n[^\s)#]/.test(withoutDocstrings)) return null;
  return { before: setup.slice(0, head.index), text: `${setup.slice(head.index).trimEnd()}\n` };
}

const indented = (code: string) => (/^[ \t]/.test(code) ? code : code.replaceAll(/^(?=.)/gm, '    '));

/** Adds a call of `check`. HumanEval's tests only define this function, so without the call they would accept any answer. */
function callingCheck(tests: string, entryPoint: string): string {
  const defined = definedNames(tests).includes('check');
  return defined && !/^check\s*\(/m.test(tests) ? `${tests}\n\ncheck(${entryPoint})\n` : tests;
}
