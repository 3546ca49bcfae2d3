import { create } from '@bufbuild/protobuf';
import { TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { z } from 'zod';
import type { Problem } from './problem.js';

/** One line of HumanEval.jsonl (github.com/openai/human-eval). */
export const HumanEvalLine = z.object({
  task_id: z.string().min(1),
  prompt: z.string().min(1),
  entry_point: z.string().min(1),
  canonical_solution: z.string(),
  test: z.string().min(1),
});
export type HumanEvalLine = z.infer<typeof HumanEvalLine>;

const INSTRUCTION = 'Complete this Python function. Answer with the whole program: its imports, its helpers and the function.';

/** The tests stay hidden. The prompt holds imports and helpers that tests call, so it comes before them as well. */
export function humanEvalProblem({ task_id, prompt, entry_point, canonical_solution, test }: HumanEvalLine): Problem {
  return {
    id: task_id,
    spec: create(TaskSpecSchema, {
      prompt: `${INSTRUCTION}\n\n${prompt}`,
      referenceSolution: prompt + canonical_solution,
      evaluator: {
        kind: {
          case: 'pythonTests',
          value: { entryPoint: entry_point, tests: `${test}\n\ncheck(${entry_point})`, setup: prompt, public: false },
        },
      },
    }),
  };
}
