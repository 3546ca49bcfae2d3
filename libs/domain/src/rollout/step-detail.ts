import { EtudeError } from '@etude/contracts/errors';
import type { RecalledItem } from '@etude/contracts/memory';
import type { ExecutionResult, RunResult } from '@etude/contracts/sandbox';
import type { Evaluator } from '@etude/contracts/task';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import type { Judgement } from '../evaluation/judge.js';
import type { JournalEntry } from '../ports/journal.js';
import type { ChatResponse } from '../ports/model.js';
import { PYTHON, readStep } from './step-answer.js';
import { isCall, textOf } from './tool-value.js';

/** What came of a step, for people. Runs of hidden cases are only counted. */
export interface StepDetail {
  readonly step: string;
  readonly text?: string;
  readonly code?: string;
  readonly tool?: string;
  readonly query?: string;
  readonly runs?: ReadonlyArray<Pick<RunResult, 'exit' | 'stdout' | 'stderr'> & { readonly case: number; readonly valueJson: string }>;
  readonly hiddenRuns?: number;
  readonly records?: ReadonlyArray<Pick<RecalledItem, 'kind' | 'id' | 'title' | 'text'>>;
}

/** The entries of a journal have no type, so their fields tell what they are. */
type Value = Partial<ChatResponse & ExecutionResult & { readonly judgement: Judgement; readonly text: string }> | null;

/** Reads a step from the journal of its rollout. @throws EtudeError NOT_FOUND */
export function stepDetail(entries: readonly JournalEntry[], step: string, evaluator: Evaluator): StepDetail {
  const found = entries.find(({ key }) => key === step);
  if (found === undefined)
    throw new EtudeError('NOT_FOUND', `The journal has no step "${step}". It may not be done yet, or be kept no longer.`);
  const { value } = found;
  if (Array.isArray(value)) return { step, records: value as RecalledItem[] };
  if (isCall(value)) return { step, tool: value.tool, query: value.query, text: textOf(value.outcome) };
  const { text, toolCalls, runs, judgement } = (value as Value) ?? {};
  if (judgement) return { step, text: `${judgement.reason}\n\n${judgement.feedback}` };
  if (runs) return { step, ...shownRuns(runs, evaluator) };
  if (typeof value === 'string') return { step, code: value };
  const code = codeOfCell(entries, step) ?? codeIn({ text: text ?? '', toolCalls }, evaluator);
  return { step, text: text ?? '', ...(code === undefined ? {} : { code }) };
}

function codeIn({ text, toolCalls }: Pick<ChatResponse, 'text' | 'toolCalls'>, evaluator: Evaluator): string | undefined {
  if (toolCalls === undefined) return extractAnswer(text, rulesOf(evaluator).entryPoint)?.code;
  const calls = readStep({ text, toolCalls }, (name) => name).calls.map(({ tool, args }) =>
    tool === PYTHON && typeof args?.['code'] === 'string' ? args['code'] : `${tool}(${JSON.stringify(args)})`,
  );
  return calls.length === 0 ? undefined : calls.join('\n\n');
}

/** The code of cell "a1.s3.c2": the second call of the answer in "a1.s3.act". */
function codeOfCell(entries: readonly JournalEntry[], step: string): string | undefined {
  const [, of = '', at = ''] = /^(a\d+\.s\d+)\.c(\d+)$/.exec(step) ?? [];
  const said = entries.find(({ key }) => key === `${of}.act`)?.value as ChatResponse | undefined;
  if (said === undefined) return undefined;
  return readStep(said, (name) => name).calls[Number(at) - 1]?.args?.['code'] as string | undefined;
}

function shownRuns(runs: readonly RunResult[], evaluator: Evaluator): Pick<StepDetail, 'runs' | 'hiddenRuns'> {
  const { cases } = rulesOf(evaluator);
  const isHidden = (at: number) => (cases ? cases[at]?.public !== true : evaluator.kind === 'python_tests' && !evaluator.public);
  const shown = runs.flatMap(({ exit, stdout, stderr, value }, at) => {
    const valueJson = value === undefined ? '' : JSON.stringify(value);
    return isHidden(at) ? [] : [{ case: cases ? at + 1 : 0, exit, stdout, stderr, valueJson }];
  });
  return { runs: shown, hiddenRuns: runs.length - shown.length };
}
