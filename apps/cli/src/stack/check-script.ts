import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { sizeOf } from '../files.js';

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
