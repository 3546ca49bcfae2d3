import { expect, it } from 'vitest';
import { SessionTurns } from './sandbox-code-sessions.js';

const never = new AbortController().signal;

it('starts the next call after a failed one, and never a call whose caller gave up', async () => {
  const turns = new SessionTurns();
  const begun: string[] = [];
  const first = Promise.withResolvers<void>();
  const take = (name: string, signal = never, work: () => Promise<void> = async () => undefined) =>
    turns.take('s', () => (begun.push(name), work()), signal);
  const gone = new AbortController();
  const running = take('first', never, () => first.promise);
  const failing = take('failing', never, () => Promise.reject(new Error('no')));
  const left = take('left', gone.signal);
  const last = take('last');
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await expect(take('late', gone.signal)).rejects.toThrow('gone');
  expect(begun).toEqual(['first']);
  first.resolve();
  await running;
  await expect(failing).rejects.toThrow('no');
  await last;
  expect(begun).toEqual(['first', 'failing', 'last']);
});
