import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { expect, it } from 'vitest';
import { sharedEmbedding } from './indexed-texts.js';

function counted() {
  const inner = new LexicalEmbedder();
  const asked: string[] = [];
  const embedder = sharedEmbedding({
    profile: inner.profile,
    async embed(texts) {
      asked.push(...texts);
      await Promise.resolve();
      if (texts.includes('broken')) throw new Error('down');
      return inner.embed(texts);
    },
  });
  return { embedder, asked };
}

it('embeds a text once for all who ask at the same time', async () => {
  const { embedder, asked } = counted();
  const [a, b, c] = await Promise.all([embedder.embed(['one']), embedder.embed(['one']), embedder.embed(['two'])]);
  expect(asked).toEqual(['one', 'two']);
  expect(a).toEqual(b);
  expect(a).not.toEqual(c);
});

it('asks again after a failure', async () => {
  const { embedder, asked } = counted();
  const both = await Promise.allSettled([embedder.embed(['broken']), embedder.embed(['broken'])]);
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(embedder.embed(['broken'])).rejects.toThrow('down');
  expect(asked).toHaveLength(2);
});
