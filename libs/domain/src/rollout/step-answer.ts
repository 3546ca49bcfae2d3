import { isDeeper, parsedJson } from '@etude/contracts/json';
import { z } from 'zod';
import { extractAnswer } from '../evaluation/answer-code.js';
import type { ChatResponse } from '../ports/model.js';

/** The tools that a step always has: code to run, and the end of the attempt. */
export const PYTHON = 'python';
export const FINAL = 'final_answer';

export interface StepCall {
  /** The id of the model's call; null for code that stood in the text. */
  readonly id: string | null;
  readonly tool: string;
  /** undefined where the model's arguments were no JSON object, or too deep. */
  readonly args: Readonly<Record<string, unknown>> | undefined;
}

export interface FinalAnswer {
  readonly answer: string;
  /** The workspace's file whose content is the answer; null: the text is. */
  readonly file: string | null;
  /** What is wrong with the arguments; null if nothing is. */
  readonly problem: string | null;
}

const Final = z.strictObject({ answer: z.unknown().optional(), file: z.string().max(512).optional() });

export interface StepAnswer {
  readonly calls: readonly StepCall[];
  readonly final: FinalAnswer | null;
}

/** Levels of nested lists and objects in arguments. */
const DEPTH_MAX = 100;

const FINAL_LINE = /^[ \t]*(?:#+[ \t]*|\*\*)?FINAL ANSWER\b:?(?:\*\*)?:?[ \t]*/im;

/**
 * Reads what a model wants to do in a step: its calls in order, and its final answer. Text holds code to run in a fenced Python block, or
 * the final answer behind a line that starts with "FINAL ANSWER". Both empty: the answer held no step.
 *
 * @param nameOf the tool that was offered under a name
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
  if (error) return { answer: '', file: null, problem: 'its arguments are "answer" or "file", of which one is needed.' };
  const { answer = '', file = '' } = data;
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  const isEmpty = text.trim() === '' && file === '';
  return { answer: text, file: file.replace(/^\.\//, '') || null, problem: isEmpty ? 'it is empty. Give "answer" or "file".' : null };
}
