import type { Readable } from 'node:stream';
import type { CallWatch } from './call-watch.js';

/** `enough`: all that is needed came, the rest may follow briefly. `done`: the end came. `full`: more is not wanted. */
export type Progress = 'more' | 'enough' | 'done' | 'full';

/** How long the rest of an answer may take once enough of it came, and the end of a body once its answer is done. */
const REST_MS = 2_000;

/**
 * Feeds a body's text to `push` until that has what it needs or the body ends, well or broken off: what came decides.
 *
 * @throws the signal's AbortError when the watch ends the exchange
 */
export function pumpBody(body: Readable, watch: CallWatch, push: (text: string) => Progress): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let rest: NodeJS.Timeout | undefined;
  const finish = (progress: Progress) => {
    clearTimeout(rest);
    watch.signal.removeEventListener('abort', abort);
    body.off('data', hear).off('end', end).off('close', end);
    if (progress === 'done') drain(body);
    else body.destroy();
  };
  const end = () => {
    finish('full');
    resolve();
  };
  const abort = () => {
    finish('full');
    reject(watch.signal.reason);
  };
  const hear = (text: string) => {
    watch.touch();
    const progress = push(text);
    if (progress === 'more') return;
    if (progress === 'enough') {
      rest ??= setTimeout(end, REST_MS);
      return;
    }
    finish(progress);
    resolve();
  };
  body.setEncoding('utf8');
  // An error closes the body too; the listener stays, since tearing down may raise more of them.
  body.on('error', ignoreBroken).on('data', hear).on('end', end).on('close', end);
  watch.signal.addEventListener('abort', abort, { once: true });
  if (watch.signal.aborted) abort();
  return promise;
}

function ignoreBroken(): void {}

/** Lets the connection be used again: its body must end. One that doesn't is closed. */
function drain(body: Readable): void {
  const timer = setTimeout(() => body.destroy(), REST_MS);
  timer.unref();
  body.once('close', () => clearTimeout(timer));
  body.resume();
}
