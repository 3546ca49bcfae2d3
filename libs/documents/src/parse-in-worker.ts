import { type ChildProcess, fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import type { MediaType, ParsedDocument } from './document.js';
import { type ParseOptions, tooLarge, unreadable } from './parse-limits.js';
import type { ChildAnswer, ChildTask } from './parse-child-main.js';

export interface WorkerLimits extends ParseOptions {
  /** From the start of the process; 60 s by default. */
  readonly wallMs?: number;
  /** Of the whole process, everything included; 1,024 by default. */
  readonly memoryMiB?: number;
}

const WALL_MS = 60_000;
const MEMORY_MIB = 1_024;
const CHILD = fileURLToPath(new URL('../dist/parse-child-main.js', import.meta.url));

/**
 * `parseDocument` for bytes of anyone: in a process of its own that has no network, writes nothing, starts nothing, knows no
 * setting of this one, and is ended when it takes too long or grows too large.
 *
 * @throws EtudeError as `parseDocument`; PAYLOAD_TOO_LARGE where time or memory did not suffice
 */
export async function parseInWorker(
  bytes: Uint8Array,
  mediaType: MediaType,
  limits: WorkerLimits,
  signal: AbortSignal,
): Promise<ParsedDocument> {
  const { wallMs = WALL_MS, memoryMiB = MEMORY_MIB, ...options } = limits;
  const { name } = options;
  if (signal.aborted) throw new EtudeError('CANCELLED', `reading ${JSON.stringify(name)} was cancelled`);
  const child = startChild();
  try {
    const answer = await answerOf(child, { bytes, mediaType, options, memoryMiB }, AbortSignal.any([signal, AbortSignal.timeout(wallMs)]));
    return fromAnswer(answer, name, memoryMiB);
  } catch (error) {
    if (signal.aborted) throw new EtudeError('CANCELLED', `reading ${JSON.stringify(name)} was cancelled`);
    if ((error as Error).name === 'TimeoutError') throw tooLarge(name, `was not read within ${wallMs} ms`, 'split it, or save it anew');
    throw error;
  } finally {
    child.kill('SIGKILL');
  }
}

function startChild(): ChildProcess {
  return fork(CHILD, [], {
    // What is not allowed here it has not: network, writing, other processes.
    execArgv: ['--permission', '--allow-worker', '--no-warnings', ...readable().map((folder) => `--allow-fs-read=${join(folder, '*')}`)],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}

/** Folders of the parsers' own code. */
function readable(): string[] {
  const { resolve } = createRequire(CHILD);
  const packages = /^.*[/\\]node_modules(?=[/\\])/.exec(resolve('unpdf'))?.[0];
  const contracts = dirname(dirname(resolve('@etude/contracts/errors')));
  return [dirname(dirname(CHILD)), contracts, ...(packages ? [packages] : [])];
}

function answerOf(child: ChildProcess, task: ChildTask, signal: AbortSignal): Promise<ChildAnswer> {
  const { name } = task.options;
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason as Error);
    signal.addEventListener('abort', aborted, { once: true });
    child.once('message', (answer) => {
      signal.removeEventListener('abort', aborted);
      resolve(answer as ChildAnswer);
    });
    child.once('error', (cause) => {
      reject(new EtudeError('INTERNAL', `the parser of ${JSON.stringify(name)} did not start: ${cause.message}`, {}, { cause }));
    });
    child.once('exit', (code, killedBy) => {
      signal.removeEventListener('abort', aborted);
      reject(unreadable(name, `ended its parser (${killedBy ?? `exit code ${code}`}); it is damaged, or made to do that`));
    });
    child.send(task, (cause) => {
      if (cause) reject(new EtudeError('INTERNAL', `${JSON.stringify(name)} did not reach its parser: ${cause.message}`, {}, { cause }));
    });
  });
}

function fromAnswer(answer: ChildAnswer, name: string, memoryMiB: number): ParsedDocument {
  if ('document' in answer) return answer.document;
  if ('error' in answer) throw new EtudeError(answer.error.code, answer.error.message);
  throw tooLarge(name, `needs more than ${memoryMiB} MiB to be read`, 'split it, or save it anew without what it carries along');
}
