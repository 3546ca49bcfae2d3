import { parentPort } from 'node:worker_threads';
import type { AnalyserTask, ThreadAnswer } from './analyser-child-main.js';
import { findSecrets, pythonAnalyser } from './find-in-text.js';

const findInPython = pythonAnalyser();
// The first text costs most of a second: it is none of anybody's.
await findInPython('pass\n');
await findSecrets('pass\n');

async function answerTo({ text, language }: AnalyserTask): Promise<ThreadAnswer> {
  try {
    const inPython = language === 'python' ? await findInPython(text) : [];
    return { findings: [...inPython, ...(await findSecrets(text))] };
  } catch (error) {
    // The stack of this thread, or of the analyser inside it.
    const deep = ['RangeError', 'RuntimeError'].includes((error as Error).name);
    return { failed: deep ? 'it is nested too deep' : String(error).slice(0, 200) };
  }
}

const say = (answer: ThreadAnswer | 'ready') => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(answer);
};

parentPort?.on('message', (task: AnalyserTask) => {
  void answerTo(task).then(say);
});
say('ready');
