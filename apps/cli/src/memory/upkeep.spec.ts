import { create } from '@bufbuild/protobuf';
import { ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { embedded } from './upkeep.js';

const cli = createCli(readSettings({}), { timeout: 30_000 }, new AbortController().signal);

it('says after Ctrl-C that the re-embedding continues, and how to stop it', async () => {
  const notes: string[] = [];
  const out = { status: () => undefined, note: (text: string) => notes.push(text) } as unknown as typeof cli.out;
  const memory = { getReembedding: () => Promise.reject(new Error('was asked')) };
  const started = create(ReembeddingSchema, { model: 'lexical-hash-1', state: 'running' });
  await expect(embedded({ ...cli, out, signal: AbortSignal.abort() }, memory, started)).rejects.toMatchObject({ name: 'AbortError' });
  expect(notes).toEqual([
    expect.stringMatching(/continues without this command.*etude memory reembedding;.*etude memory stop-reembedding/),
  ]);
});
