import type { Settings } from '../cli.js';

/** The server's URL without user, password and query, which may hold a key. null if it is no URL. */
export function modelUrl({ OPENAI_BASE_URL }: { readonly OPENAI_BASE_URL?: string | undefined }): string | null {
  const url = URL.parse(OPENAI_BASE_URL || 'https://api.openai.com/v1');
  return url && `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

/** Longest wait for the server's list of models. Nothing is said about a slower server. */
const TIMEOUT_MS = 3_000;

/** Why the configured model server can't answer tasks. null if it answers, or if this can't be told from here. Never throws. */
export async function modelTrouble(
  { OPENAI_BASE_URL, OPENAI_API_KEY, environment }: Settings,
  signal: AbortSignal,
): Promise<string | null> {
  // Only the proxy reaches the server, so it can't be checked from here.
  if (environment['ETUDE_MODEL_PROXY_URL']) return null;
  const base = modelUrl({ OPENAI_BASE_URL });
  try {
    const { status } = await fetch(`${base}/models`, {
      headers: OPENAI_API_KEY ? { authorization: `Bearer ${OPENAI_API_KEY}` } : {},
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    return status === 401 || status === 403 ? `the model server at ${base} refuses the key (HTTP ${status}): set OPENAI_API_KEY` : null;
  } catch (error) {
    if (signal.aborted || (error as Error).name === 'TimeoutError') return null;
    const { cause, message } = error as { readonly cause?: { readonly code?: string }; readonly message: string };
    return `the model server at ${base} can't be reached (${cause?.code ?? message}): start it, and the next task finds it, or set OPENAI_BASE_URL`;
  }
}
