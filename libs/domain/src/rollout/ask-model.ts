import type { StepKind } from '@etude/contracts/task';
import type { ChatRequest } from '../ports/model.js';
import type { RolloutContext } from './rollout-context.js';

/** What is kept of a model's answer. */
export interface ModelAnswer {
  readonly text: string;
  /** It ended at a limit of length, not by itself. */
  readonly cutOff: boolean;
  readonly model: string;
  readonly scripted: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

/** One journaled model call: once answered it is never made again. */
export function askModel(
  { steps, deps, signal }: RolloutContext,
  key: string,
  kind: StepKind,
  request: () => ChatRequest,
): Promise<ModelAnswer> {
  return steps.run(key, kind, async () => {
    const { text, finishReason, model, scripted, inputTokens, outputTokens, costUsd } = await deps.model.chat(request(), signal);
    const cutOff = finishReason === 'length';
    const tokens = { inputTokens, outputTokens, costUsd };
    return {
      value: { text, cutOff, model, scripted, ...tokens },
      summary: `${model} answered ${text.length} characters${cutOff ? ', cut off at its limit' : ''}`,
      usage: { modelCalls: 1, ...tokens },
      scripted,
    };
  });
}
