import { describe, expect, it } from 'vitest';
import { parseDocument } from '../src/parse-document.js';
import { column, makePdf, type PdfParts } from './make-pdf.js';

const parse = (parts: PdfParts) => parseDocument(makePdf(parts), 'application/pdf', 'chapter.pdf');
const prose = ['Searching means to find one thing among many others, and it', 'takes as long as there are things to look at, one by one.'];

const numberedPage = (n: number) => [
  { text: `Chapter 2: Searching          ${n}`, y: 30, size: 8 },
  ...column([`Page ${n === 1 ? 'one' : n === 2 ? 'two' : 'three'} says something of its own about it.`, ...prose]),
  { text: 'Free to share', y: 770, size: 8 },
  { text: String(n), x: 300, y: 785 },
];

describe('parsePdf', () => {
  it('recognises headings by their size and keeps their page', async () => {
    const parsed = await parse({
      title: 'Algorithms',
      pages: [
        [{ text: '2 Searching', y: 60, size: 20, font: 'bold' }, ...column(prose)],
        [{ text: '2.1 Binary search', y: 60, size: 14, font: 'bold' }, ...column(prose)],
      ],
    });
    expect(parsed.title).toBe('Algorithms');
    expect(parsed.sections).toEqual([
      { headings: ['2 Searching'], text: prose.join(' '), page: 1 },
      { headings: ['2 Searching', '2.1 Binary search'], text: prose.join(' '), page: 2 },
    ]);
  });

  it('joins a heading of two lines, and recognises a bold heading of the body size', async () => {
    const { sections } = await parse({
      pages: [
        [
          { text: 'How to look for things that', y: 60, size: 20 },
          { text: 'are in order', y: 82, size: 20 },
          ...column(prose),
          { text: '2.1.1 Ordered lists', y: 150, font: 'bold' },
          ...column(prose, { y: 170 }),
        ],
      ],
    });
    expect(sections.map(({ headings }) => headings)).toEqual([
      ['How to look for things that are in order'],
      ['How to look for things that are in order', '2.1.1 Ordered lists'],
    ]);
  });

  it('takes sections from the outline, where headings look like the body', async () => {
    const { sections } = await parse({
      pages: [
        [{ text: 'CHAPTER 3. GRAPHS', y: 60 }, ...column(prose)],
        [
          { text: '3.1 Shortest paths in', y: 60 },
          { text: 'weighted graphs', y: 72 },
          ...column(prose),
          { text: 'Queues', y: 150, size: 14 },
        ],
      ],
      outline: [
        { title: 'Graphs', page: 0, items: [{ title: 'Shortest paths in weighted graphs', page: 1 }] },
        { title: 'Elsewhere', page: 1 },
      ],
    });
    expect(sections.map(({ headings }) => headings)).toEqual([
      ['CHAPTER 3. GRAPHS'],
      ['CHAPTER 3. GRAPHS', '3.1 Shortest paths in weighted graphs'],
      ['CHAPTER 3. GRAPHS', '3.1 Shortest paths in weighted graphs', 'Queues'],
    ]);
  });

  it('joins words that were hyphenated at a line end, but keeps compounds', async () => {
    const lines = ['A well-known algo-', 'rithm finds what is well-', 'known in a list of num-', 'bers that are in order.'];
    const { sections } = await parse({ pages: [column(lines)] });
    expect(sections[0]?.text).toBe('A well-known algorithm finds what is well-known in a list of numbers that are in order.');
  });

  it('drops running headers, footers and page numbers', async () => {
    const { sections } = await parse({ pages: [numberedPage(1), numberedPage(2), numberedPage(3)] });
    const text = sections.map((section) => section.text).join('\n');
    expect(text).not.toMatch(/Chapter 2|Free to share|\b[123]\b/);
    expect(text).toMatch(/Page one says.*Page two says.*Page three says/s);
  });

  it('reads columns in the order in which they are drawn', async () => {
    const left = column(['left column line one is filled', 'left column line two is filled'], { y: 100 });
    const right = column(['up to here, as is the right one', 'so it ends.'], { x: 320, y: 100 });
    const { sections } = await parse({ pages: [[...left, ...right]] });
    expect(sections[0]?.text).toBe([...left, ...right].map(({ text }) => text).join(' '));
  });

  it('keeps the lines and the indentation of code', async () => {
    const code = [
      { text: 'def find(xs, x):', x: 72, y: 140, font: 'mono' as const },
      { text: 'return x in xs', x: 96, y: 152, font: 'mono' as const },
    ];
    const { sections } = await parse({ pages: [[...column(prose), ...code, ...column(prose, { y: 180 })]] });
    expect(sections[0]?.text).toBe([prose.join(' '), '```\ndef find(xs, x):\n    return x in xs\n```', prose.join(' ')].join('\n\n'));
  });

  it('continues a paragraph on the next page', async () => {
    const { sections } = await parse({ pages: [column(['It is said here, and then it', 'goes']), column(['on there. So it ends.'])] });
    expect(sections[0]?.text).toBe('It is said here, and then it goes on there. So it ends.');
  });

  it('runs no script of a PDF', async () => {
    const script = '/OpenAction << /S /JavaScript /JS (globalThis.ran = true; while \\(true\\) {}) >>';
    const { sections } = await parse({ catalog: script, pages: [column(prose)] });
    expect(sections[0]?.text).toBe(prose.join(' '));
    expect(globalThis).not.toHaveProperty('ran');
  });

  it.each([
    ['without any text', makePdf({ pages: [[]] }), /1 pages without any text.*OCR/],
    ['that is cut off', makePdf({ pages: [column(prose)] }).slice(0, 200), /cannot be read as a PDF|without any text/],
    ['that is something else', new TextEncoder().encode('hello'), /cannot be read as a PDF/],
    [
      'with a password',
      makePdf({
        pages: [column(prose)],
        trailer: `/ID [<${'00'.repeat(16)}> <${'00'.repeat(16)}>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >>`,
      }),
      /is encrypted; save it without a password/,
    ],
  ])('describes the fault of a PDF %s', async (_, bytes, message) => {
    const parsing = parseDocument(bytes, 'application/pdf', 'chapter.pdf');
    await expect(parsing).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
  });

  it('reads no more pages than are allowed', async () => {
    await expect(parse({ pages: Array.from({ length: 5_001 }, () => []) })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringMatching(/has 5001 pages; at most 5000/),
    });
  });
});
