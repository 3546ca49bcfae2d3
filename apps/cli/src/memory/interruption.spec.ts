import { expect, it } from 'vitest';
import { sayingHowToGoOn } from './interruption.js';

async function notesOf(interrupted: boolean): Promise<string[]> {
  const notes: string[] = [];
  const out = { status: () => undefined, note: (text: string) => notes.push(text) };
  const signal = interrupted ? AbortSignal.abort() : new AbortController().signal;
  const cli = { signal, out } as unknown as Parameters<typeof sayingHowToGoOn>[0];
  await expect(sayingHowToGoOn(cli, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  return notes;
}

it('says after Ctrl-C how to go on, and nothing after another end', async () => {
  expect(await notesOf(true)).toEqual(['interrupted; run the same again to go on']);
  expect(await notesOf(false)).toEqual([]);
});
