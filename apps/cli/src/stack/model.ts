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

/** A server that needs no name is asked for the first model that it lists. */
export function modelName({ OPENAI_MODEL, OPENAI_BASE_URL = '' }: ModelSettings): string {
  return OPENAI_MODEL || `the first model of ${URL.parse(OPENAI_BASE_URL)?.host ?? OPENAI_BASE_URL}`;
}

/** To be shown: without the name, the password and the query, which may hold a key. null where it is no URL. */
export function modelUrl({ OPENAI_BASE_URL }: ModelSettings): string | null {
  const url = URL.parse(OPENAI_BASE_URL || 'https://api.openai.com/v1');
  return url && `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

/** A server that takes longer to list its models is slow, and not away. */
const TIMEOUT_MS = 3_000;

/** Why the configured model server will answer no task; null where it answers, or where it can't be told from here. Never throws. */
export async function modelTrouble(
  { OPENAI_BASE_URL, OPENAI_API_KEY, environment }: Settings,
  signal: AbortSignal,
): Promise<string | null> {
  // What a proxy reaches is not reached from here.
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
/** What it ends with where the script is wrong; its reasons are on stderr. */
const Refusal = z.object({ code: z.literal(2), stderr: z.string() });

/**
 * Has the scripted model read a script before anything is started: it alone knows what one may say.
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
