import { Worker } from 'node:worker_threads';
import type { SkillFinding } from '@etude/contracts/skill-proof';

export interface AnalyserTask {
  readonly text: string;
  readonly language: 'python' | 'text';
}

export type ThreadAnswer = { readonly findings: readonly SkillFinding[] } | { readonly failed: string };
export type ChildAnswer = 'ready' | ThreadAnswer;

const WATCH_MS = 20;

const answer = (message: ChildAnswer) => process.send?.(message);

/**
 * The process around the analysers: one text after the other, until one of them makes it fail. They have a thread, so that this
 * one can see how large the process grows: WebAssembly's memory is in no heap that could be limited.
 */
function analyse(memoryMiB: number): void {
  const thread = new Worker(new URL('./analyser-thread-main.js', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: memoryMiB },
  });
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() > memoryMiB * 2 ** 20) answer({ failed: `it needs more than ${memoryMiB} MiB` });
  }, WATCH_MS);
  watch.unref();
  thread.on('message', answer);
  thread.once('error', (error: Error) => answer({ failed: error.message }));
  process.on('message', (task) => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    thread.postMessage(task);
  });
}

process.once('disconnect', () => process.exit(0));
analyse(Number(process.argv[2]));
