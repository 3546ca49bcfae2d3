import type { StudentCall } from '@etude/test-support/student';
import { round } from './figures.js';

/** A row of the summary of `etude eval families`. */
export interface FamiliesRow {
  readonly round: number;
  readonly arm: string;
  readonly kind: string;
  readonly tasks: number;
  readonly firstRight: number;
  readonly misled: number;
  readonly bySkill: number;
  readonly modelCalls: number;
  readonly tokens: number;
}

/** @param from the first round that counts */
export function learningFigures(rows: readonly FamiliesRow[], from: number): Record<string, number> {
  const sum = (arm: string, kind: string, pick: (row: FamiliesRow) => number) =>
    rows.filter((row) => row.round >= from && row.arm === arm && row.kind === kind).reduce((total, row) => total + pick(row), 0);
  const ratio = (kind: string, pick: (row: FamiliesRow) => number) => round(sum('with', kind, pick) / sum('without', kind, pick));
  const percent = (arm: string, kind: string, pick: (row: FamiliesRow) => number) =>
    round((100 * sum(arm, kind, pick)) / sum(arm, kind, ({ tasks }) => tasks), 1);
  const right = ({ firstRight }: FamiliesRow) => firstRight;
  const misled = ({ misled: count }: FamiliesRow) => count;
  return {
    tokens_with_vs_without_ratio: ratio('all', ({ tokens }) => tokens),
    calls_with_vs_without_ratio: ratio('all', ({ modelCalls }) => modelCalls),
    house_rule_calls_ratio: ratio('house_rule', ({ modelCalls }) => modelCalls),
    procedure_calls_ratio: ratio('procedure', ({ modelCalls }) => modelCalls),
    distractor_calls_ratio: ratio('distractor', ({ modelCalls }) => modelCalls),
    house_rule_first_right_percent: percent('with', 'house_rule', right),
    house_rule_first_right_without_percent: percent('without', 'house_rule', right),
    house_rule_misled_percent: percent('with', 'house_rule', misled),
    distractor_misled_percent: percent('with', 'distractor', misled),
    distractor_first_right_lost_percent: round(percent('without', 'distractor', right) - percent('with', 'distractor', right), 1),
    procedure_by_skill_percent: percent('with', 'procedure', ({ bySkill }) => bySkill),
  };
}

export function callsByKind(calls: readonly StudentCall[]) {
  const kinds = [...Map.groupBy(calls, ({ kind }) => kind)].map(([kind, of]) => ({
    kind,
    calls: of.length,
    tokens: of.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0),
  }));
  return kinds.toSorted((a, b) => b.tokens - a.tokens);
}
