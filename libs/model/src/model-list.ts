import { abortError } from './abort.js';
import type { Exchange, OpenAiConnection } from './openai-connection.js';

const LIST_CHARS_MAX = 4 * 1024 * 1024;
const LIST_TIMEOUT_MS = 5_000;

/**
 * The first model that a server lists, or `default`, which single-model servers take, where no list comes within 5 s.
 *
 * Asked once: it is the chat call that matters, and that one says why a server can't be used.
 * @throws an AbortError
 */
export async function firstModel(connection: OpenAiConnection, signal: AbortSignal): Promise<string> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
  const list = await connection.once(listed, bounded).catch(() => {
    if (signal.aborted) throw abortError(signal);
    return '';
  });
  return firstId(list) ?? 'default';
}

async function listed({ client, signal, text }: Exchange): Promise<string> {
  return text(await client.models.list({ signal }).asResponse(), LIST_CHARS_MAX);
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
