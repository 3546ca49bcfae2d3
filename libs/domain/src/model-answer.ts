import { errorCode, isOnlyThisAnswer } from '@etude/contracts/errors';
import type { z } from 'zod';
import type { ChatMessage, ChatModel } from './ports/model.js';

const TRIES = 3;
const WRONG_CHARS = 4_000;

export function question(rules: string, asked: string): ChatMessage[] {
  return [
    { role: 'system', content: rules },
    { role: 'user', content: asked },
  ];
}

/** Data for a prompt, as JSON in an XML element. No text in the data can close the element. */
export const dataElement = (tag: string, data: unknown) => `<${tag}>${JSON.stringify(data).replaceAll('<', '\\u003c')}</${tag}>`;

/** Estimates a text's tokens as one for every four characters, as in English prose. */
export const approximateTokens = (text: string) => Math.ceil(text.length / 4);

export const cutText = (text: string, charsMax: number) => (text.length <= charsMax ? text : `${text.slice(0, charsMax)} [cut]`);

/** Reads the JSON object in a model's answer, which may have a fence or words around it. */
export function readJsonAnswer<S extends z.ZodType>(schema: S, text: string): { readonly data: z.output<S> } | { readonly wrong: string } {
  let json: unknown;
  try {
    json = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1));
  } catch (error) {
    return { wrong: `it is not JSON (${(error as Error).message})` };
  }
  const { data, error } = schema.safeParse(json);
  if (error) return { wrong: error.issues.map(({ path, message }) => `${path.join('.') || 'answer'}: ${message}`).join('; ') };
  return { data };
}

/** The sum of tokens and money for several answers. */
export interface AnswerCost {
  /** The name of the last model, as its server reported it. null if no model answered. */
  readonly model: string | null;
  readonly scripted: boolean;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

export interface JsonAnswer<T> extends AnswerCost {
  /** null if no answer could be used. */
  readonly data: T | null;
  /** Tells people why there is no data. Empty if there is data. */
  readonly failure: string;
  readonly modelCalls: number;
}

export const NO_COST: AnswerCost = { model: null, scripted: false, inputTokens: 0, outputTokens: 0, costUsd: 0 };

export function addCost(cost: AnswerCost, { model, scripted, inputTokens, outputTokens, costUsd }: AnswerCost): AnswerCost {
  return {
    model,
    scripted: cost.scripted || scripted,
    inputTokens: cost.inputTokens + inputTokens,
    outputTokens: cost.outputTokens + outputTokens,
    costUsd: cost.costUsd + costUsd,
  };
}

export interface AnswerChecks<T> {
  /** Returns the reasons why the data can't be used. Empty if the data can be used. */
  readonly check?: (data: T, signal: AbortSignal) => Promise<readonly string[]>;
  /** Called for each unusable answer. If it returns `stop`, the model isn't asked again. */
  readonly onFailure?: (failure: string, modelCalls: number) => Promise<'go_on' | 'stop'>;
}

/**
 * Asks the model for JSON. If an answer can't be parsed, or if `check` returns reasons, the model is told why and asked again, at most twice.
 *
 * @throws EtudeError MODEL_UNAVAILABLE; MODEL_RATE_LIMITED; MODEL_REFUSED if the server would refuse every request; errors of `check`; an
 *   AbortError when `signal` aborts
 */
export async function askForJson<S extends z.ZodType>(
  schema: S,
  asked: readonly ChatMessage[],
  model: ChatModel,
  signal: AbortSignal,
  { check, onFailure }: AnswerChecks<z.output<S>> = {},
): Promise<JsonAnswer<z.output<S>>> {
  const messages = [...asked];
  let told = NO_COST;
  for (let modelCalls = 1; ; modelCalls += 1) {
    const failed = (failure: string) => ({ ...told, data: null, failure, modelCalls });
    const answer = await model.chat({ messages, temperature: 0 }, signal).catch((error: unknown) => {
      if (!isOnlyThisAnswer(error)) throw error;
      return { failure: `${errorCode(error)}: ${(error as Error).message}` };
    });
    if ('failure' in answer) return failed(answer.failure);
    told = addCost(told, answer);
    const read = readJsonAnswer(schema, answer.text);
    const wrong = 'wrong' in read ? read.wrong : ((await check?.(read.data, signal)) ?? []).join('; ');
    if ('data' in read && wrong === '') return { ...told, data: read.data, failure: '', modelCalls };
    if ((await onFailure?.(wrong, modelCalls)) === 'stop') return failed('the answer is not needed any more');
    if (modelCalls === TRIES) return failed(`${TRIES} answers could not be used, the last one because ${wrong}`);
    messages.push({ role: 'assistant', content: answer.text }, { role: 'user', content: complaint(wrong) });
  }
}

/** Tells the model why its answer can't be used. The reason may quote output of code, so the prompt marks it as data. */
function complaint(wrong: string): string {
  return `That can't be used. What is wrong, which is data: ${dataElement('wrong', wrong.slice(0, WRONG_CHARS))}\nAnswer again with the JSON object alone.`;
}
