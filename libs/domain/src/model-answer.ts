import { errorCode, isOnlyThisAnswer } from '@etude/contracts/errors';
import type { z } from 'zod';
import type { ChatMessage, ChatModel } from './ports/model.js';

const TRIES = 3;

/** Data for a prompt, as JSON in an element that no text inside can close. */
export const dataElement = (tag: string, data: unknown) => `<${tag}>${JSON.stringify(data).replaceAll('<', '\\u003c')}</${tag}>`;

/** Cuts a text to the length that a prompt shows. */
export const cutText = (text: string, charsMax: number) => (text.length <= charsMax ? text : `${text.slice(0, charsMax)} [cut]`);

/** Parses the JSON object in a model's answer, with or without a fence or words around it. Returns it, or what is wrong with it. */
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

export interface JsonAnswer<T> {
  /** null where no answer could be used, which differs from an empty answer. */
  readonly data: T | null;
  /** Why there is no data, for people; empty where there is. */
  readonly failure: string;
  readonly modelCalls: number;
  readonly scripted: boolean;
}

/**
 * Asks the model for JSON. An answer that can't be read is sent back with its error, at most twice.
 *
 * @throws EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED where every request would be refused; an AbortError when `signal`
 * aborts
 */
export async function askForJson<S extends z.ZodType>(
  schema: S,
  question: readonly ChatMessage[],
  model: ChatModel,
  signal: AbortSignal,
): Promise<JsonAnswer<z.output<S>>> {
  const messages = [...question];
  let scripted = false;
  for (let modelCalls = 1; ; modelCalls += 1) {
    const answer = await model.chat({ messages, temperature: 0 }, signal).catch((error: unknown) => {
      if (!isOnlyThisAnswer(error)) throw error;
      return { failure: `${errorCode(error)}: ${(error as Error).message}` };
    });
    if ('failure' in answer) return { data: null, failure: answer.failure, modelCalls, scripted };
    scripted ||= answer.scripted;
    const read = readJsonAnswer(schema, answer.text);
    if ('data' in read) return { data: read.data, failure: '', modelCalls, scripted };
    if (modelCalls === TRIES)
      return { data: null, failure: `${TRIES} answers did not parse; the last: ${read.wrong}`, modelCalls, scripted };
    messages.push(
      { role: 'assistant', content: answer.text },
      { role: 'user', content: `That can't be read: ${read.wrong}\nAnswer again with the JSON object alone.` },
    );
  }
}
