import { parentPort, workerData } from 'node:worker_threads';
import { errorCode } from '@etude/contracts/errors';
import type { ChildAnswer, ChildTask } from './parse-child-main.js';
import { parseDocument } from './parse-document.js';

async function answer(): Promise<ChildAnswer> {
  const { bytes, mediaType, options } = workerData as ChildTask;
  try {
    return { document: await parseDocument(bytes, mediaType, options, new AbortController().signal) };
  } catch (error) {
    return { error: { code: errorCode(error), message: error instanceof Error ? error.message : String(error) } };
  }
}

const message = await answer();
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
parentPort?.postMessage(message);
