import type { DocumentRecord } from '@etude/contracts/memory';
import { expect } from 'vitest';
import { ALL, type MakeMemory, withMemory } from '@etude/domain/testing/memory-conformance-start';
import { chunksOf, documentOf, SCOPE } from '@etude/domain/testing/memory-records';
import type { SemanticLayer } from '../src/memory.js';

const putInto = (memory: SemanticLayer, texts: readonly string[], changes: Partial<DocumentRecord> = {}, signal?: AbortSignal) => {
  const document = documentOf(texts, changes);
  return memory.storeDocument(document, chunksOf(document, texts), signal);
};
const chunkTexts = async (memory: SemanticLayer) =>
  (await memory.search(ALL, { text: 'brewing guide', limit: 50, kinds: ['chunk'] })).map(({ text }) => text).toSorted();

/** The promises of a semantic layer about documents and their searchable chunks. */
export function documentLayerConformance(make: MakeMemory<SemanticLayer>): void {
  const it = withMemory(make);
  it('stores a document once and finds its chunks by title, headings and text', async ({ memory }) => {
    expect(await putInto(memory, ['Boil it.', 'Let it cool.'])).toBe('added');
    expect(await putInto(memory, ['Boil it.', 'Let it cool.'])).toBe('unchanged');
    expect(await chunkTexts(memory)).toEqual(['Boil it.', 'Let it cool.']);
    expect(await memory.search(ALL, { text: 'cool', limit: 1 })).toMatchObject([
      { id: 'd1.1', kind: 'chunk', title: 'Guide to brewing › Water', sources: ['guide.md'] },
    ]);
    expect(await memory.documents(ALL, { limit: 5 })).toEqual([documentOf(['Boil it.', 'Let it cool.'])]);
    expect(await memory.documents(ALL, { limit: 5, afterKey: 'd1' })).toEqual([]);
  });

  it('replaces the content of a document', async ({ memory }) => {
    await putInto(memory, ['Boil it.', 'Let it cool.', 'Drink.']);
    expect(await putInto(memory, ['Boil it.', 'Serve hot.'])).toBe('replaced');
    expect(await chunkTexts(memory)).toEqual(['Boil it.', 'Serve hot.']);
    expect(await memory.documents(ALL, { limit: 5 })).toMatchObject([{ id: 'd1', chunks: 2 }]);
  });

  it('keeps the documents of two users apart', async ({ memory }) => {
    for (const user of ['ann', 'bob']) await putInto(memory, ['Boil it.'], { id: `d-${user}`, scope: { ...SCOPE, user } });
    expect(await memory.documents(ALL, { limit: 5 })).toHaveLength(2);
    expect(await memory.documents({ ...ALL, user: 'ann' }, { limit: 5 })).toMatchObject([{ id: 'd-ann' }]);
  });

  it('completes a document whose first write was aborted', async ({ memory }) => {
    const texts = Array.from({ length: 100 }, (_, i) => `Paragraph of ${'abcdefghij'[i % 10]}${'abcdefghij'[Math.floor(i / 10)]}.`);
    const stop = new AbortController();
    const cut = putInto(memory, texts, {}, stop.signal);
    stop.abort();
    await expect(cut).rejects.toMatchObject({ name: 'AbortError' });
    expect(await memory.documents(ALL, { limit: 5 })).toEqual([]);
    expect(await putInto(memory, texts)).toBe('added');
    expect(await chunkTexts(memory)).toHaveLength(50);
  });
}
