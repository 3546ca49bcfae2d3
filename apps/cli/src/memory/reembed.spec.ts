import { create } from '@bufbuild/protobuf';
import { ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { describe, expect, it } from 'vitest';
import { createCli, readSettings } from '../cli.js';
import { EXIT } from '../errors.js';
import { checkFlags, embedded, nextStep, reembedText } from './reembed.js';

const cli = createCli(readSettings({}), { timeout: 30 }, new AbortController().signal);
const move = { model: 'all-minilm-l6-v2', dimension: 0, drop: '', used: 'lexical-hash-1', adapter: 'sqlite' };

describe('checkFlags', () => {
  it.each([
    [{ stop: true, drop: 'lexical' }, '--stop goes'],
    [{ dimension: 5 }, '--to names'],
    [{ to: 'sentence', drop: 'all-minilm-l6-v2' }, 'would drop'],
  ])('refuses %j', (options, message) => {
    expect(() => checkFlags(options)).toThrow(expect.objectContaining({ exit: EXIT.usage, message: expect.stringContaining(message) }));
  });

  it.each([{}, { stop: true }, { drop: 'lexical' }, { to: 'x', dimension: 5, drop: 'lexical' }])('takes %j', (options) => {
    expect(() => checkFlags(options)).not.toThrow();
  });
});

describe('nextStep', () => {
  it('names the commands that are left', () => {
    expect(nextStep(cli, 'ready', move)?.split('\n').slice(1)).toEqual([
      '  ./etude down',
      '  ETUDE_EMBEDDER=sentence ./etude up',
      '  ./etude memory reembed --drop lexical-hash-1',
    ]);
  });

  it('starts a stack again where its memory is', () => {
    expect(nextStep(cli, 'ready', { ...move, adapter: 'qdrant' })).toContain('./etude up --memory qdrant');
  });

  it('knows what is done already', () => {
    expect(nextStep(cli, 'ready', { ...move, used: move.model })).toContain('already');
    expect(nextStep(cli, 'ready', { ...move, drop: 'other' })).toBe('the vectors of other are dropped');
    expect(nextStep(cli, 'failed', move)).toBeNull();
  });
});

it.each([
  ['running', 'held up, and tried again: MEMORY_UNAVAILABLE: nobody answers'],
  ['failed', 'failed: MEMORY_UNAVAILABLE: nobody answers'],
])('says of what is %s what is in its way', (state, said) => {
  const record = create(ReembeddingSchema, { model: 'other', state, done: 1n, total: 3n, error: 'MEMORY_UNAVAILABLE: nobody answers' });
  expect(reembedText(record)).toBe(`other: ${state}, 1 of 3 records\n${said}`);
});

it('says after Ctrl-C that the move goes on, and how to stop it', async () => {
  const notes: string[] = [];
  const out = { status: () => undefined, note: (text: string) => notes.push(text) } as unknown as typeof cli.out;
  const memory = { getReembedding: () => Promise.reject(new Error('was asked')) };
  const started = create(ReembeddingSchema, { model: 'lexical-hash-1', state: 'running' });
  const waiting = embedded({ ...cli, out, signal: AbortSignal.abort() }, { memory }, started);
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  expect(notes).toEqual([expect.stringMatching(/goes on without this command.*etude memory reembed;.*etude memory reembed --stop/)]);
});
