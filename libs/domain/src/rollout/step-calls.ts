import { isDeeper, type Json, parsedJson } from '@etude/contracts/json';
import type { RecalledItem } from '@etude/contracts/memory';
import { z } from 'zod';
import { extractAnswer } from '../evaluation/answer-code.js';
import { cutMiddle } from '../evaluation/evaluator.js';
import type { ChatResponse } from '../ports/model.js';
import type { WorkCellOutcome } from '../ports/sandboxes.js';
import { endingOf } from '../tools/execute-code.js';
import type { ToolOutcome } from '../tools/tool-definition.js';
import type { EarlierFinding } from './kept-findings.js';

/** The two tools of every step: one runs code, the other ends the attempt with an answer. */
export const PYTHON = 'python';
export const FINAL = 'final_answer';

export interface StepCall {
  /** The id that the model gave the call. null for code in the answer's text. */
  readonly id: string | null;
  readonly tool: string;
  /** undefined if the model's arguments were not a JSON object, or were nested too deeply. */
  readonly args: Readonly<Record<string, unknown>> | undefined;
}

export interface FinalAnswer {
  readonly answer: string;
  /** The workspace file whose content is the answer. null if `answer` is the answer. */
  readonly file: string | null;
  readonly problem: string | null;
}

const Final = z.strictObject({ answer: z.unknown().optional(), file: z.string().max(512).optional() });

export interface StepAnswer {
  readonly calls: readonly StepCall[];
  readonly final: FinalAnswer | null;
}

const DEPTH_MAX = 100;

const FINAL_LINE = /^[ \t]*(?:#+[ \t]*|\*\*)?FINAL ANSWER\b:?(?:\*\*)?:?[ \t]*/im;

/**
 * Reads the calls, in order, and the final answer from a model's answer. Without tool calls, the text may hold a fenced Python block to run, or a
 * final answer after "FINAL ANSWER" at the start of a line. Otherwise the answer holds no step.
 *
 * @param nameOf returns a tool's own name for the name that the model was given
 */
export function readStep({ text, toolCalls = [] }: Pick<ChatResponse, 'text' | 'toolCalls'>, nameOf: (name: string) => string): StepAnswer {
  const calls = toolCalls.map(({ id, name, arguments: given }) => ({ id, tool: nameOf(name), args: argumentsIn(given) }));
  const ended = calls.find(({ tool }) => tool === FINAL);
  if (calls.length > 0) return { calls: calls.filter((call) => call !== ended), final: ended ? finalOf(ended.args) : null };
  const end = FINAL_LINE.exec(text);
  if (end) return { calls: [], final: finalOf({ answer: text.slice(end.index + end[0].length).trim() }) };
  const code = /```|~~~/.test(text) ? extractAnswer(text)?.code : undefined;
  return { calls: code === undefined ? [] : [{ id: null, tool: PYTHON, args: { code } }], final: null };
}

function argumentsIn(text: string): StepCall['args'] {
  const value = parsedJson(text);
  const isUsable = typeof value === 'object' && value !== null && !Array.isArray(value) && !isDeeper(value, DEPTH_MAX);
  return isUsable ? (value as Record<string, unknown>) : undefined;
}

function finalOf(args: unknown): FinalAnswer {
  const { data, error } = Final.safeParse(args);
  if (error) return { answer: '', file: null, problem: 'it needs the argument "answer" or "file".' };
  const { answer = '', file = '' } = data;
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  const isEmpty = text.trim() === '' && file === '';
  return { answer: text, file: file.replace(/^\.\//, '') || null, problem: isEmpty ? 'it is empty. Give "answer" or "file".' : null };
}

/** A tool call as the journal stores it. */
export interface ToolValue {
  readonly tool: string;
  readonly query: string;
  /** A digest of tool and arguments, so equal calls have equal identities. */
  readonly identity: string;
  readonly filePath?: string;
  readonly outcome: ToolOutcome | { readonly success: true; readonly result: Json };
  /** Digest of the files' state at the time of the call. */
  readonly stamp?: string;
  /** The call was not made, because nothing has changed since an earlier equal call. The outcome is that call's outcome. */
  readonly again?: true;
  /** Digest of the file's content before the call. */
  readonly digest?: string;
  /** The call was not made. The outcome is this finding, which an earlier rollout stored. */
  readonly earlier?: EarlierFinding;
  readonly lost?: string;
}

export const offerOf = ({ fact }: EarlierFinding): string =>
  `(Not read: an earlier task of this agent read this file while it had the same content, by its digest, and found:)\n${fact}\n(Call again to read the file.)`;

/** Whether a journaled value belongs to a tool call. Keys below a call's key hold other values too, such as the opening of a sandbox. */
export const isCall = (value: unknown): value is ToolValue => typeof value === 'object' && value !== null && 'outcome' in value;

export function textOf(outcome: ToolValue['outcome']): string {
  if (outcome.success) return typeof outcome.result === 'string' ? outcome.result : JSON.stringify(outcome.result);
  const { error, result } = outcome;
  return result === undefined ? `Failed: ${error}` : `Failed: ${error}\n${JSON.stringify(result)}`;
}

export function recordsIn(outcome: ToolValue['outcome']): readonly RecalledItem[] {
  const records = outcome.success ? (outcome.result as { records?: unknown } | null)?.records : undefined;
  return Array.isArray(records) ? (records as RecalledItem[]) : [];
}

const STREAM_CHARS_MAX = 20_000;
const DISPLAY_CHARS_MAX = 8_000;

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
  // If the code raised an exception, stderr shows the traceback. If a limit ended the code, the reason must be added.
  if (exit === 'nonzero' && error !== undefined) parts.push(stderr === '' ? endingOf(outcome) : '');
  else if (exit !== 'ok') parts.push(endingOf(ended));
  if (stateLost) parts.push('The interpreter was restarted. Files and the scratchpad are kept, but all other names are lost.');
  return parts.filter((part) => part !== '').join('\n') || '(no output)';
}
