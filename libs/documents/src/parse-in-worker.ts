import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EtudeError, unlessAborted } from '@etude/contracts/errors';
import { tooLarge, unreadable, type MediaType, type ParsedDocument } from './document.js';
import type { ChildAnswer, ChildTask } from './parse-child-main.js';

export interface WorkerLimits {
  readonly name: string;
  /** Time limit from the start of the process. Default 60,000. */
  readonly wallMs?: number;
  /** Memory limit of the whole process. Default 1,024. It is only enforced where the system has a `/proc`. */
  readonly memoryMiB?: number;
}

const WALL_MS = 60_000;
const MEMORY_MIB = 1_024;
const MIB = 2 ** 20;
const WATCH_MS = 10;
const PAGE_BYTES = 4_096;
const STACK_KIB = 4_000;
const CHILD = fileURLToPath(new URL('../dist/parse-child-main.js', import.meta.url));

/**
 * Parses untrusted bytes in a separate process. The process has no network and an empty environment, and can't write files or start
 * processes. It is killed when it exceeds its time or memory.
 *
 * @throws EtudeError as `parseDocument`; also PAYLOAD_TOO_LARGE if time or memory ran out
 */
export async function parseInWorker(
  bytes: Uint8Array,
  mediaType: MediaType,
  { name, wallMs = WALL_MS, memoryMiB = MEMORY_MIB }: WorkerLimits,
  signal: AbortSignal,
): Promise<ParsedDocument> {
  if (signal.aborted) throw new EtudeError('CANCELLED', `reading ${JSON.stringify(name)} was cancelled`);
  const stop = new AbortController();
  const child = startChild(memoryMiB);
  const watch = setInterval(() => {
    if (memoryOf(child) > memoryMiB * MIB)
      stop.abort(
        tooLarge(name, `needs more than ${memoryMiB} MiB to be read`, 'split it, or save it without attachments and large images'),
      );
  }, WATCH_MS);
  try {
    const answers = once(child, 'message') as Promise<[ChildAnswer]>;
    const exits = once(child, 'exit').then(([code, killedBy]) => {
      throw unreadable(name, `ended its parser (${killedBy ?? `exit code ${code}`}); the file is damaged or malicious`);
    });
    child.send({ bytes, mediaType, name } satisfies ChildTask);
    const ends = AbortSignal.any([signal, stop.signal, AbortSignal.timeout(wallMs)]);
    const [answer] = await unlessAborted(Promise.race([answers, exits]), ends);
    if ('document' in answer) return answer.document;
    throw new EtudeError(answer.error.code, answer.error.message);
  } catch (error) {
    if (signal.aborted) throw new EtudeError('CANCELLED', `reading ${JSON.stringify(name)} was cancelled`);
    if ((error as Error).name === 'TimeoutError') throw tooLarge(name, `was not read within ${wallMs} ms`, 'split it, or save it anew');
    throw error;
  } finally {
    clearInterval(watch);
    child.kill('SIGKILL');
  }
}

function startChild(memoryMiB: number): ChildProcess {
  // Above `memoryMiB`, so that this module kills the process before its heap is full.
  const limits = [`--max-old-space-size=${2 * memoryMiB}`, `--stack-size=${STACK_KIB}`];
  return fork(CHILD, [], {
    // Denies network, writes, child processes and threads.
    execArgv: ['--permission', '--no-warnings', ...limits, ...readable().map((folder) => `--allow-fs-read=${join(folder, '*')}`)],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
}

/** Resident memory of the process in bytes, including memory outside of the heap. 0 if unknown. */
function memoryOf({ pid }: ChildProcess): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}

/** The folders with the parsers' code, which the process may read. */
function readable(): string[] {
  const { resolve } = createRequire(CHILD);
  const packages = /^.*[/\\]node_modules(?=[/\\])/.exec(resolve('unpdf'))?.[0];
  const contracts = dirname(dirname(resolve('@etude/contracts/errors')));
  return [dirname(dirname(CHILD)), contracts, ...(packages ? [packages] : [])];
}
