import { describe, expect, it } from 'vitest';
import { type MediaType, mediaTypeOf } from '../src/document.js';
import { parseDocument } from '../src/parse-document.js';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const parse = (bytes: Uint8Array | string, type: MediaType = 'text/plain') =>
  parseDocument(typeof bytes === 'string' ? bytesOf(bytes) : bytes, type, 'file');

const readMarkdown = (text: string) => parse(text, 'text/markdown');
const readHtml = (text: string) => parse(text, 'text/html');

describe('mediaTypeOf', () => {
  it.each([
    ['a/b.md', 'text/markdown'],
    ['B.PDF', 'application/pdf'],
    ['x.y.html', 'text/html'],
    ['notes.txt', 'text/plain'],
  ])('recognises %s by its extension', (path, type) => {
    expect(mediaTypeOf(path)).toBe(type);
  });

  it.each(['a.docx', 'README', '.md/file', ''])('refuses %j and lists the known extensions', (path) => {
    expect(() => mediaTypeOf(path)).toThrow(/is unknown; use an extension of \.md/);
  });
});

describe('parseDocument of plain text', () => {
  it('keeps paragraphs and uses a separate first line as title', async () => {
    const { title, sections } = await parse('A short guide\n\nOne\ntwo.\r\n \r\n\n\nThree.');
    expect(title).toBe('A short guide');
    expect(sections).toEqual([{ headings: [], text: 'A short guide\n\nOne\ntwo.\n\nThree.', page: null }]);
    expect((await parse('Only prose that goes on\nand on.')).title).toBe('file');
  });

  it('reads UTF-8 and drops its byte order mark', async () => {
    expect((await parse('\uFEFFé')).sections[0]?.text).toBe('é');
  });

  it.each([
    ['Latin-1', Uint8Array.of(0x61, 0x62, 0xe9, 0x63), /not valid UTF-8; save it as UTF-8/],
    ['zero bytes', Uint8Array.of(0x61, 0, 0x62), /zero bytes/],
    ['nothing', new Uint8Array(), /is empty/],
  ])('refuses %s', async (_, bytes, message) => {
    await expect(parse(bytes)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
  });

  it('drops control characters', async () => {
    expect((await parse('a\u0007b\u001b[1mc\fd')).sections[0]?.text).toBe('ab[1mc\nd');
  });

  it('reads no more characters than are allowed', async () => {
    const expected = { code: 'PAYLOAD_TOO_LARGE', message: expect.stringMatching(/more than 20000000 characters/) };
    await expect(parse('x'.repeat(20_000_001))).rejects.toMatchObject(expected);
  });
});

describe('parseDocument of Markdown', () => {
  it('makes a section of each heading, under those above it', async () => {
    const { title, sections } = await readMarkdown('before\n\n# One\n\n## Two *em*\n\ntext\n\n### Three\n\n# Four\n\nend');
    expect(title).toBe('One');
    expect(sections.map(({ headings, text }) => [headings.join(' > '), text])).toEqual([
      ['', 'before'],
      ['One > Two em', 'text'],
      ['One > Two em > Three', ''],
      ['Four', 'end'],
    ]);
  });

  it('keeps lists, code and tables readable', async () => {
    const { sections } = await readMarkdown(
      '- a\n  - b\n- [x] c\n\n1. d\n\n```py\nx = 1\n\ny = 2\n```\n\n| k | v |\n|---|---|\n| `a` | [b](u) |',
    );
    expect(sections[0]?.text).toBe('- a\n  - b\n- [x] c\n\n1. d\n\n```py\nx = 1\n\ny = 2\n```\n\nk | v\na | b');
  });

  it('takes the title from front matter, and drops the front matter', async () => {
    const { title, sections } = await readMarkdown('---\ntitle: "A: b"\ntags: [x]\n---\n# H\n\ntext');
    expect(title).toBe('A: b');
    expect(sections).toEqual([{ headings: ['H'], text: 'text', page: null }]);
  });

  it('drops scripts and comments of HTML in it', async () => {
    const { sections } = await readMarkdown('<!-- a -->\n\n<div>seen<script>bad()</script></div>\n\ntext <b>bold</b> ![alt](x.png)');
    expect(sections[0]?.text).toBe('seen\n\ntext bold alt');
  });
});

describe('parseDocument of HTML', () => {
  it('reads headings, paragraphs, lists, tables and code', async () => {
    const { title, sections } = await readHtml(
      `<title>T</title><body><p>in<b>tro</b>
       line<br>next<h1>One</h1><ul><li>a<li>b</ul><h2>Two</h2><pre><code class="language-js">a

  b</code></pre><table><caption>C</caption><tr><th>k<th>v<tr><td>1<td>2</table>`,
    );
    expect(title).toBe('T');
    expect(sections.map(({ headings, text }) => [headings.join(' > '), text])).toEqual([
      ['', 'intro line\nnext'],
      ['One', '- a\n- b'],
      ['One > Two', '```js\na\n\n  b\n```\n\nC\nk | v\n1 | 2'],
    ]);
  });

  it('drops hidden elements', async () => {
    const hidden =
      '<script>a()</script><style>b{}</style><p hidden>c</p><p style="color:red; DISPLAY : none">d</p><div aria-hidden="true">e</div>' +
      '<template><p>f</p></template><noscript>g</noscript><svg><text>h</text></svg><!-- i --><textarea>j</textarea>';
    const { sections } = await readHtml(`${hidden}<p>shown</p>`);
    expect(sections).toEqual([{ headings: [], text: 'shown', page: null }]);
  });

  it('reads only the main element if there is one', async () => {
    expect((await readHtml('<header>menu</header><main><p>text</main><footer>end')).sections[0]?.text).toBe('text');
  });
});
