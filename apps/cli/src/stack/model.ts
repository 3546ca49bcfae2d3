import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Settings } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { sizeOf } from '../files.js';

/** Environment variables that say which model is asked. */
export interface ModelSettings {
  readonly OPENAI_MODEL?: string | undefined;
  readonly OPENAI_BASE_URL?: string | undefined;
}

/** The model's name, for people. Without OPENAI_MODEL it is the first model that the server lists. */
export function modelName({ OPENAI_MODEL, OPENAI_BASE_URL = '' }: ModelSettings): string {
  return OPENAI_MODEL || `the first model of ${URL.parse(OPENAI_BASE_URL)?.host ?? OPENAI_BASE_URL}`;
}

/** The server's URL without user, password and query, which may hold a key. null if it is no URL. */
export function modelUrl({ OPENAI_BASE_URL }: ModelSettings): string | null {
  const url = URL.parse(OPENAI_BASE_URL || 'https://api.openai.com/v1');
  return url && `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

/** Longest wait for the server's list of models. A slower server is reported as unreachable. */
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
    if (signal.aborted) return null;
    const { cause, message } = error as { readonly cause?: { readonly code?: string }; readonly message: string };
    return `the model server at ${base} can't be reached (${cause?.code ?? message}): start it, and the next task finds it, or set OPENAI_BASE_URL`;
  }
}

const SCRIPTED_MODEL = 'libs/model/dist/scripted-main.js';
/** How the scripted model ends for a wrong script: with code 2, and the reasons on stderr. */
const Refusal = z.object({ code: z.literal(2), stderr: z.string() });

/**
 * Has the scripted model check a script before anything is started, because only it knows the format.
 *
 * @param root of the checkout
 * @throws CliError with what is wrong in it
 */
export async function checkScript(root: string, path: string, signal: AbortSignal): Promise<void> {
  const script = resolve(path);
  sizeOf(script);
  try {
    await promisify(execFile)(process.execPath, [join(root, SCRIPTED_MODEL), '--script', script, '--check'], { signal });
  } catch (error) {
    const refusal = Refusal.safeParse(error);
    if (!refusal.success) throw error;
    const reasons = refusal.data.stderr.trim().split('\n');
    throw new CliError(EXIT.usage, `${path} is no script (docs/scripted-model.md)`, reasons, { cause: error });
  }
}
