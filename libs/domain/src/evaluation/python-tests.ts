import type { Evaluator } from '@etude/contracts/task';
import { definedNames, definesName } from './answer-code.js';
import { crashOutcome, cutMiddle, type EvaluatorRules, PASSED, shown, streams } from './evaluator.js';
import { callable } from './function-cases.js';

const TESTS_CHARS_MAX = 12_000;

/** Runs the caller's test code in a process of its own; the tests call the answer. */
export function pythonTests(evaluator: Extract<Evaluator, { kind: 'python_tests' }>): EvaluatorRules {
  const { entryPoint, setup, tests, public: isPublic } = evaluator;
  const stub = stubIn(setup, entryPoint);
  return {
    entryPoint,
    /**
     * An answer that defines the entry point follows the setup. Any other answer becomes the body of the stub at the setup's end. The
     * stub's text then moves to the answer, so that setup and answer are each valid Python.
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

/** The function `entryPoint` with its decorators and the text before it, if the setup ends inside it as HumanEval's do; else null. */
function stubIn(setup: string, entryPoint: string): { readonly before: string; readonly text: string } | null {
  const head = new RegExp(`^(?:@.*\\n)*(?:async[ \\t]+)?def[ \\t]+${entryPoint}[ \\t]*\\(`, 'm').exec(setup);
  if (head === null) return null;
  const withoutDocstrings = setup.slice(head.index + head[0].length).replaceAll(/("""|''')[^]*?\1/g, '""');
  if (/\n[^\s)#]/.test(withoutDocstrings)) return null;
  return { before: setup.slice(0, head.index), text: `${setup.slice(head.index).trimEnd()}\n` };
}

const indented = (code: string) => (/^[ \t]/.test(code) ? code : code.replaceAll(/^(?=.)/gm, '    '));

/** Adds the call of `check(candidate)` that HumanEval's tests leave to the harness. Without the call they would accept any answer. */
function callingCheck(tests: string, entryPoint: string): string {
  const defined = definedNames(tests).includes('check');
  return defined && !/^check\s*\(/m.test(tests) ? `${tests}\n\ncheck(${entryPoint})\n` : tests;
}
