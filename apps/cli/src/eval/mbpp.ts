import { create } from '@bufbuild/protobuf';
import { TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { z } from 'zod';
import type { Problem } from './problem.js';

const tests = z.array(z.string().min(1)).min(1);
const taskId = z.union([z.number(), z.string()]);

/** One line of mbpp.jsonl (google-research/mbpp). `challenge_test_list` is not part of the standard score. */
const Original = z.object({
  task_id: taskId,
  text: z.string().min(1),
  code: z.string().min(1),
  test_list: tests,
  test_setup_code: z.string().default(''),
});
/** One entry of sanitized-mbpp.json. */
const Sanitized = z.object({
  task_id: taskId,
  prompt: z.string().min(1),
  code: z.string().min(1),
  test_list: tests,
  test_imports: z.array(z.string()).default([]),
});
export const MbppEntry = z.union([Original, Sanitized], {
  error: 'is neither an original entry (task_id, text, code, test_list) nor a sanitized one (task_id, prompt, code, test_list)',
});
export type MbppEntry = z.infer<typeof MbppEntry>;

/** Three times the default: one reference of the original needs about 6 s of CPU, and on a busy machine most of 20 s in all. */
const sandbox = { cpuTime: { seconds: 30n }, wallTime: { seconds: 60n } };

const names = (code: string, pattern: RegExp) => [...code.matchAll(pattern)].map((match) => match[1] ?? '');

/**
 * The function that the tests call and the reference defines: the first in the first test, since it may be called with
 * others inside. A function goes before a class, which the tests only use to make arguments.
 */
export function entryPointOf(code: string, testList: readonly string[]): string | null {
  const called = testList.flatMap((test) => names(test, /\b([A-Za-z_]\w*)\s*\(/g));
  const defined = [/^def\s+(\w+)/gm, /^\s*def\s+(\w+)/gm, /^(\w+)\s*=\s*lambda\b/gm, /^class\s+(\w+)/gm];
  for (const pattern of defined) {
    const here = new Set(names(code, pattern));
    const found = called.find((name) => here.has(name));
    if (found) return found;
  }
  return null;
}

/** The wording of the paper (Austin et al. 2021, section 2.1), which shows the tests. null where no entry point is found. */
export function mbppProblem(entry: MbppEntry): Problem | null {
  const text = 'text' in entry ? entry.text : entry.prompt;
  const setup = 'test_imports' in entry ? entry.test_imports.join('\n') : '';
  // In front of the tests and not in the setup: it may use classes that the answer defines.
  const before = 'test_setup_code' in entry && entry.test_setup_code ? `${entry.test_setup_code}\n` : '';
  const testList = entry.test_list.join('\n');
  const entryPoint = entryPointOf(entry.code, entry.test_list);
  if (!entryPoint) return null;
  return {
    id: `MBPP/${entry.task_id}`,
    spec: create(TaskSpecSchema, {
      prompt: `You are an expert Python programmer, and here is your task: ${text.trim()} Your code should pass these tests:\n\n${testList}\n`,
      referenceSolution: entry.code,
      limits: { sandbox },
      evaluator: { kind: { case: 'pythonTests', value: { entryPoint, tests: before + testList, setup, public: true } } },
    }),
  };
}
