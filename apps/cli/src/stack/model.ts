import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Cli, Settings } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { sizeOf } from '../files.js';

/** Environment variables that say which model is asked. */
export interface ModelSettings {
  readonly OPENAI_MODEL?: string | undefined;
  readonly OPENAI_BASE_URL?: string | undefined;
}

export const DEFAULT_BASE_URL = 'https://api.openai.com/v1';

/** A server that needs no name is asked for the first model that it lists. */
export function modelName({ OPENAI_MODEL, OPENAI_BASE_URL = '' }: ModelSettings): string {
  return OPENAI_MODEL || `the first model of ${URL.parse(OPENAI_BASE_URL)?.host ?? OPENAI_BASE_URL}`;
}

/** To be shown: without the name, the password and the query, which may hold a key. null where it is no URL. */
export function modelUrl({ OPENAI_BASE_URL }: ModelSettings): string | null {
  const url = URL.parse(OPENAI_BASE_URL || DEFAULT_BASE_URL);
  return url && `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
}

/** A server that takes longer to list its models is slow, and not away. */
const TIMEOUT_MS = 3_000;

interface FailedFetch {
  readonly cause?: { readonly code?: string; readonly message?: string };
}

/**
 * Why the configured model server will answer no task, with what mends it; null where it answers, or where it can't be told from here.
 * Never throws: a server that is started later is found then.
 */
export async function modelTrouble(
  { OPENAI_BASE_URL, OPENAI_API_KEY, environment }: Settings,
  signal: AbortSignal,
): Promise<string | null> {
  // What a proxy reaches is not reached from here.
  if (environment['ETUDE_MODEL_PROXY_URL']) return null;
  const base = (OPENAI_BASE_URL || DEFAULT_BASE_URL).replace(/\/+$/, '');
  const shown = modelUrl({ OPENAI_BASE_URL }) ?? base;
  if (holdsCredentials(base))
    return `the address of the model server at ${shown} has a name or a password in it, which is not sent: ${mend('OPENAI_BASE_URL without them, and OPENAI_API_KEY')}`;
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(`${base}/models`, {
      headers: OPENAI_API_KEY ? { authorization: `Bearer ${OPENAI_API_KEY}` } : {},
      signal: AbortSignal.any([signal, timeout]),
    });
    await response.body?.cancel();
    const isRefused = response.status === 401 || response.status === 403;
    return isRefused ? `the model server at ${shown} refuses the key (HTTP ${response.status}): ${mend('OPENAI_API_KEY')}` : null;
  } catch (error) {
    if (signal.aborted) return null;
    const { code, message } = (error as FailedFetch).cause ?? {};
    const why = timeout.aborted ? `no answer within ${TIMEOUT_MS / 1_000} s` : (code ?? message ?? (error as Error).message);
    return `the model server at ${shown} can't be reached (${why}): start it, and the next task finds it, or ${mend('OPENAI_BASE_URL')}`;
  }
}

function holdsCredentials(base: string): boolean {
  const { username = '', password = '' } = URL.parse(base) ?? {};
  return username !== '' || password !== '';
}

const mend = (setting: string) =>
  `stop the stack, set ${setting}, and start it again. Until then tasks fail; everything that needs no model works`;

/** Asks while the stack starts, so that nothing waits for it. Answers what tells of it. */
export function watchModel({ settings, signal, out }: Pick<Cli, 'settings' | 'signal' | 'out'>): () => Promise<void> {
  const trouble = modelTrouble(settings, signal);
  return async () => {
    const said = await trouble;
    if (said !== null) out.note(`warning: ${said}`);
  };
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
