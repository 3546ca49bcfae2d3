import { errorCode } from '@etude/contracts/errors';
import type { OpenAiConnection } from './openai-connection.js';

const LIST_CHARS_MAX = 4 * 1024 * 1024;

/**
 * The first model that a server lists, or `default`, which single-model servers take, where it lists none.
 *
 * @throws EtudeError MODEL_UNAVAILABLE when it can't be reached; an AbortError
 */
export async function firstModel(connection: OpenAiConnection, signal: AbortSignal): Promise<string> {
  try {
    const list = await connection.call(async ({ client, signal: ending, text }) => {
      const response = await client.models.list({ signal: ending }).asResponse();
      return text(response, LIST_CHARS_MAX);
    }, signal);
    return firstId(list) ?? 'default';
  } catch (error) {
    // A server without a list refuses; it is the chat call that matters.
    if (errorCode(error) === 'MODEL_REFUSED') return 'default';
    throw error;
  }
}

function firstId(text: string): string | null {
  try {
    const { data } = JSON.parse(text) as { data?: Array<{ id?: unknown }> };
    const id = Array.isArray(data) ? data[0]?.id : undefined;
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null;
  }
}
