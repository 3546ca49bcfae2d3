import { z } from 'zod';
import type { Clock } from '../ports/clock.js';
import { type Questions, RolloutWaits } from '../ports/journal.js';
import { defineTool, type ToolDefinition } from './tool-definition.js';

export interface AskCallerDeps {
  readonly questions: Questions;
  readonly clock: Clock;
  readonly rolloutId: string;
}

const ANSWER_HOURS = 72;
const HOUR_MS = 3_600_000;

/** Asks the task's caller. A call throws `RolloutWaits` until the answer comes, which pauses the rollout. */
export function askCallerTool({ questions, clock, rolloutId }: AskCallerDeps): ToolDefinition {
  return defineTool({
    name: 'ask_caller',
    title: 'Ask the caller',
    description: 'Asks the one who submitted the task, where the task leaves open what only they can know. They may take days to answer.',
    input: z.strictObject({
      question: z.string().trim().min(1).max(4_000),
      hours: z.number().min(0.001).max(720).default(ANSWER_HOURS).describe('How long to wait for an answer.'),
    }),
    output: z.strictObject({ answer: z.string().optional() }),
    readOnly: false,
    idempotent: true,
    async run({ question: text, hours }, { callId }) {
      // The question's key is the step's key, such as "a1.s3.t1". The call's id is "<rollout>.<step's key>".
      const question = { key: callId.slice(rolloutId.length + 1), text, deadlineAt: clock.now() + hours * HOUR_MS };
      const answer = await questions.ask(question);
      if (answer === null) throw new RolloutWaits(question);
      if (answer === 'expired')
        return { success: false, error: 'Nobody answered in time. Go on with what you know, and say what you assumed.' };
      return { success: true, result: answer };
    },
  });
}
