import type { ConsolidationCounts } from '@etude/contracts/memory-upkeep';
import type { ConsolidationReport } from '../ports/consolidation-report.js';
import type { ChatModel } from '../ports/model.js';
import { contentDigest } from '../skills/content-digest.js';

export type Spent = Pick<ConsolidationCounts, 'modelCalls' | 'inputTokens' | 'outputTokens' | 'costUsd'>;

/** The most that a run may spend; 0: no limit. */
export interface RunBudget {
  readonly modelCallsMax: number;
  readonly tokensMax: number;
}

export function isWithin({ modelCallsMax, tokensMax }: RunBudget, ...spent: readonly Spent[]): boolean {
  const sum = (count: (one: Spent) => number) => spent.reduce((total, one) => total + count(one), 0);
  const calls = sum(({ modelCalls }) => modelCalls);
  const tokens = sum(({ inputTokens, outputTokens }) => inputTokens + outputTokens);
  return (modelCallsMax === 0 || calls < modelCallsMax) && (tokensMax === 0 || tokens < tokensMax);
}

/** A model that counts into `spent` and keeps its answers in the report. A run that continues after a crash gets them from there. */
export function countedModel(
  model: ChatModel,
  agent: string,
  report: Pick<ConsolidationReport, 'answer' | 'putAnswer'>,
  spent: Spent,
): ChatModel {
  return {
    async chat(request, signal) {
      spent.modelCalls += 1;
      const key = contentDigest([agent, request.messages]);
      const kept = await report.answer(key);
      const answer = kept ?? (await model.chat(request, signal));
      if (kept === null) await report.putAnswer(key, answer);
      for (const count of ['inputTokens', 'outputTokens', 'costUsd'] as const) spent[count] += answer[count];
      return answer;
    },
  };
}
