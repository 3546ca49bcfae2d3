import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkDocument } from '../src/chunk-document.js';
import type { Section } from '../src/document.js';

const document = (...sections: ReadonlyArray<Partial<Section>>) => ({
  title: 'T',
  sections: sections.map((section) => ({ headings: [], text: '', page: null, ...section })),
});
const textsOf = (text: string, charsMax: number) => chunkDocument(document({ text }), { charsMax }).map((chunk) => chunk.text);
const words = (n: number) => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

const count = (of: string, word: RegExp) => of.match(word)?.length ?? 0;

describe('chunkDocument', () => {
  it('keeps paragraphs together while they fit', () => {
    const text = [words(8), words(8), words(8)].join('\n\n');
    expect(textsOf(text, 120)).toEqual([`${words(8)}\n\n${words(8)}`, words(8)]);
  });

  it('cuts a long paragraph between sentences', () => {
    const sentence = `${words(10)}.`;
    expect(textsOf(`${sentence} ${sentence} ${sentence}`, 150)).toEqual([`${sentence} ${sentence}`, sentence]);
    expect(textsOf('。'.padStart(60, '文').repeat(3), 130)).toEqual(['。'.padStart(60, '文').repeat(2), '。'.padStart(60, '文')]);
  });

  it('keeps code whole where it fits, with its empty lines', () => {
    const code = `\`\`\`py\n${'x = 1\n\n'.repeat(12)}\`\`\``;
    expect(textsOf(`${words(8)}\n\n${code}`, 120)).toEqual([words(8), code]);
  });

  it('cuts code between lines and repeats the fence in each part', () => {
    const code = `\`\`\`py\n${Array.from({ length: 40 }, (_, i) => `line_${i}()`).join('\n')}\n\`\`\``;
    const texts = textsOf(code, 150);
    expect(texts.every((text) => text.startsWith('```py\nline_') && text.endsWith(')\n```'))).toBe(true);
    expect(texts.flatMap((text) => text.split('\n').slice(1, -1))).toEqual(code.split('\n').slice(1, -1));
  });

  it('repeats the head of a table in each part', () => {
    const table = ['key | value', ...Array.from({ length: 30 }, (_, i) => `k${i} | v${i}`)].join('\n');
    expect(textsOf(table, 120).every((text) => text.startsWith('key | value\nk'))).toBe(true);
  });

  it('finds a heading without text by the heading', () => {
    expect(chunkDocument(document({ headings: ['A', 'B'] }))).toEqual([{ index: 0, headings: ['A', 'B'], text: 'B', page: null }]);
  });

  it('refuses more chunks than a document may have', () => {
    const sections = Array.from({ length: 20_001 }, () => ({ headings: ['h'], text: 'x' }));
    expect(() => chunkDocument(document(...sections))).toThrow(/20001 chunks; at most 20000 are allowed; split it/);
    expect(chunkDocument(document(...sections.slice(1)))).toHaveLength(20_000);
  });

  it('loses no character, cuts no short word, exceeds no bound and is deterministic for any text', () => {
    const pieces = fc.constantFrom('word ', '. ', '\n', '\n\n', '```\n', '😀', 'a | b\n', '文。', 'x'.repeat(150), ' ');
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 80 }), fc.integer({ min: 100, max: 300 }), (parts, charsMax) => {
        const text = parts.join('');
        const chunks = textsOf(text, charsMax);
        expect(chunks.every((chunk) => chunk.length <= charsMax && chunk.isWellFormed())).toBe(true);
        // A row without spaces that is longer than a chunk is cut anywhere, so there only the characters count.
        for (const kept of [/[wx]/g, /(?<!\S)word(?!\S)/g, /😀/g, /文/g]) {
          // The head of a table is repeated.
          expect(count(chunks.join('\n'), kept)).toBeGreaterThanOrEqual(count(text, kept));
        }
        expect(textsOf(text, charsMax)).toEqual(chunks);
      }),
    );
  });
});
