import { Worker } from 'node:worker_threads';
import type { ErrorCode } from '@etude/contracts/errors';
import type { MediaType, ParsedDocument } from './document.js';
import type { ParseOptions } from './parse-limits.js';

export interface ChildTask {
  readonly bytes: Uint8Array;
  readonly mediaType: MediaType;
  readonly options: ParseOptions;
  readonly memoryMiB: number;
}

export type ChildAnswer =
  | { readonly document: ParsedDocument }
  | { readonly error: { readonly code: ErrorCode; readonly message: string } }
  | { readonly outOfMemory: true };

const WATCH_MS = 10;
const STACK_MIB = 16;

/**
 * The process around a parser. The parser has a thread, so that this one can see how large the process grows: buffers that
 * a stream is unpacked into are in no heap that could be limited.
 */
function parseOne(task: ChildTask): void {
  const memoryMax = task.memoryMiB * 2 ** 20;
  const thread = new Worker(new URL('./parse-thread-main.js', import.meta.url), {
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: task.memoryMiB, stackSizeMb: STACK_MIB },
  });
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() > memoryMax) answer({ outOfMemory: true });
  }, WATCH_MS);
  let answered = false;
  const answer = (message: ChildAnswer) => {
    if (answered) return;
    answered = true;
    clearInterval(watch);
    // Whoever asked ends this process: an end of our own could overtake the answer.
    process.send?.(message);
    void thread.terminate();
  };
  thread.once('message', (message: ChildAnswer) => answer(message));
  thread.once('error', (error: Error & { code?: string }) => {
    const message = `the parser of ${JSON.stringify(task.options.name)} failed: ${error.message}`;
    answer(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? { outOfMemory: true } : { error: { code: 'INVALID_ARGUMENT', message } });
  });
}

process.once('message', (task) => parseOne(task as ChildTask));
process.once('disconnect', () => process.exit(0));
