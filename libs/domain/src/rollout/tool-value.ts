import type { Json } from '@etude/contracts/json';
import type { RecalledItem } from '@etude/contracts/memory';
import type { ToolOutcome } from '../tools/tool-definition.js';
import type { EarlierFinding } from './kept-findings.js';
import type { WorkCellOutcome } from '../ports/sandboxes.js';
import { endingOf } from '../tools/execute-code.js';
import { cutMiddle } from '../evaluation/evaluator.js';

/** A journaled call, with everything that later steps need. */
export interface ToolValue {
  readonly tool: string;
  readonly query: string;
  /** Equal for equal calls. */
  readonly identity: string;
  readonly filePath?: string;
  readonly outcome: ToolOutcome | { readonly success: true; readonly result: Json };
  /** State of the files at the time of the call. */
  readonly stamp?: string;
  /** The outcome is one of an earlier call, since nothing has changed. */
  readonly again?: true;
  /** Digest of the read file, before the call. */
  readonly digest?: string;
  /** The outcome is this finding of an earlier rollout. The call was not made. */
  readonly earlier?: EarlierFinding;
  readonly lost?: string;
}

/** What the model reads in place of a file. */
export const offerOf = ({ fact }: EarlierFinding): string =>
  `(Not read: an earlier task of this agent read this file while it had the same content, by its digest, and found:)\n${fact}\n(Call again to read the file.)`;

/** Whether a journaled value is a call's, not one of the steps that a call needs. */
export const isCall = (value: unknown): value is ToolValue => typeof value === 'object' && value !== null && 'outcome' in value;

/** The outcome of a call as the model reads it. */
export function textOf(outcome: ToolValue['outcome']): string {
  if (outcome.success) return typeof outcome.result === 'string' ? outcome.result : JSON.stringify(outcome.result);
  const { error, result } = outcome;
  return result === undefined ? `Failed: ${error}` : `Failed: ${error}\n${JSON.stringify(result)}`;
}

/** The records in the answer of a tool of memory. */
export function recordsIn(outcome: ToolValue['outcome']): readonly RecalledItem[] {
  const records = outcome.success ? (outcome.result as { records?: unknown } | null)?.records : undefined;
  return Array.isArray(records) ? (records as RecalledItem[]) : [];
}

const STREAM_CHARS_MAX = 20_000;
const DISPLAY_CHARS_MAX = 8_000;

/** What a cell printed and showed, and how it ended, as the model reads it. */
export function cellText(outcome: WorkCellOutcome): string {
  const { stdout, stderr, displays, exit, stateLost } = outcome;
  const shown = displays.map((display) => {
    const text = display['text/plain'];
    const images = Object.keys(display).filter((type) => type.startsWith('image/'));
    const named = images.length === 0 ? '' : ` [${images.join(', ')}, not shown]`;
    return `${cutMiddle(typeof text === 'string' ? text : '', DISPLAY_CHARS_MAX)}${named}`;
  });
  const parts = [cutMiddle(stdout.trimEnd(), STREAM_CHARS_MAX), cutMiddle(stderr.trimEnd(), STREAM_CHARS_MAX), ...shown];
  const { error, ...ended } = outcome;
  // A traceback tells how the code failed, but not that a limit ended it.
  if (exit === 'nonzero' && error !== undefined) parts.push(stderr === '' ? endingOf(outcome) : '');
  else if (exit !== 'ok') parts.push(endingOf(ended));
  if (stateLost) parts.push('The interpreter was restarted: names are lost but for the scratchpad, files are kept.');
  return parts.filter((part) => part !== '').join('\n') || '(no output)';
}
