import type { Json } from '@etude/contracts/json';
import type { RecalledItem } from '@etude/contracts/memory';
import type { ToolOutcome } from '../tools/tool-definition.js';
import type { EarlierFinding } from './kept-findings.js';

/** A journaled call, with all that later steps use of it. */
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
  /** Of the file that is read, before the call. */
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
