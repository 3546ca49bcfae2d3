import { create } from '@bufbuild/protobuf';
import { LiftSchema, ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { embedded, liftText } from './upkeep.js';

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

it('shows effects with their intervals, and leaves out layers without shows', () => {
  const sums = { shown: 90n, shownRight: 60n, withheld: 10n, withheldRight: 7n, success: { estimate: -0.0333, low: -0.28, high: 0.27 } };
  const item = {
    ...sums,
    layer: 'semantic',
    kind: 'fact',
    id: 'f1',
    tokens: { estimate: 120.4, low: -3, high: 250 },
    archiveReason: 'harmful',
  };
  const lift = create(LiftSchema, { memory: sums, layers: [{ layer: 'semantic', ...sums }, { layer: 'episodic' }], items: [item] });
  const lines = liftText(lift).split('\n');
  expect(lines).toHaveLength(4);
  expect(lines[1]).toMatch(/^memory +60\/90 +7\/10 +-0\.03 \(-0\.28 to \+0\.27\) +-$/);
  expect(lines[3]).toMatch(/^fact f1 .*\+120 \(-3 to \+250\) +archived$/);
});
