import { deflateSync } from 'node:zlib';

export type PdfFont = 'regular' | 'bold' | 'mono';

export interface PdfLine {
  readonly text: string;
  readonly x?: number;
  /** Down from the top of the page, in points. */
  readonly y: number;
  readonly size?: number;
  readonly font?: PdfFont;
}

export interface OutlineItem {
  readonly title: string;
  readonly page: number;
  readonly items?: readonly OutlineItem[];
}

export interface PdfParts {
  readonly pages: ReadonlyArray<readonly PdfLine[]>;
  readonly title?: string;
  /** Nested titles, each with the index of its page. */
  readonly outline?: readonly OutlineItem[];
  /** Further entries of the catalog, in PDF syntax. */
  readonly catalog?: string;
  /** Further entries of the trailer, in PDF syntax. */
  readonly trailer?: string;
  /** Replaces the content of each page: bytes, and the entries of their stream. */
  readonly content?: { readonly bytes: Uint8Array; readonly entries: string };
}

const HEIGHT = 800;
const FONTS = { regular: ['F1', 'Helvetica'], bold: ['F2', 'Helvetica-Bold'], mono: ['F3', 'Courier'] } as const;

const escaped = (text: string) => text.replaceAll(/[\\()]/g, '\\$&');

function drawn({ text, x = 72, y, size = 10, font = 'regular' }: PdfLine): string {
  return `BT /${FONTS[font][0]} ${size} Tf ${x} ${HEIGHT - y} Td (${escaped(text)}) Tj ET`;
}

const stream = (bytes: Uint8Array, entries: string) =>
  Buffer.concat([Buffer.from(`<< /Length ${bytes.length} ${entries} >>\nstream\n`), bytes, Buffer.from('\nendstream')]);

/** The smallest PDF 1.4 with this content: objects, their offsets, and a trailer. */
export function makePdf({ pages, title, outline = [], catalog = '', trailer = '', content }: PdfParts): Uint8Array {
  const objects: Buffer[] = [];
  const add = (body: string | Buffer): number => objects.push(Buffer.from(body));
  const fonts = Object.values(FONTS).map(([name, base]) => `/${name} ${add(`<< /Type /Font /Subtype /Type1 /BaseFont /${base} >>`)} 0 R`);
  const tree = objects.length + 2 * pages.length + 1;
  const kids = pages.map((lines) => {
    const own = { bytes: deflateSync(Buffer.from(lines.map(drawn).join('\n'), 'latin1')), entries: '/Filter /FlateDecode' };
    const { bytes, entries } = content ?? own;
    const text = add(stream(bytes, entries));
    const box = `/MediaBox [0 0 600 ${HEIGHT}] /Resources << /Font << ${fonts.join(' ')} >> >>`;
    return add(`<< /Type /Page /Parent ${tree} 0 R ${box} /Contents ${text} 0 R >>`);
  });
  add(`<< /Type /Pages /Count ${kids.length} /Kids [${kids.map((id) => `${id} 0 R`).join(' ')}] >>`);
  const info = title === undefined ? '' : `/Info ${add(`<< /Title (${escaped(title)}) >>`)} 0 R`;
  /** Writes the last item first, so that each item knows the id of the next. Returns the id of the first item; 0 without items. */
  const outlined = (items: readonly OutlineItem[]): number =>
    items.reduceRight((next, { title: text, page, items: inner = [] }) => {
      const first = outlined(inner);
      const below = first === 0 ? '' : `/First ${first} 0 R /Last ${first} 0 R /Count ${inner.length}`;
      return add(`<< /Title (${escaped(text)}) /Dest [${kids[page]} 0 R /Fit] ${below} ${next === 0 ? '' : `/Next ${next} 0 R`} >>`);
    }, 0);
  const first = outlined(outline);
  const outlines = first === 0 ? '' : `/Outlines ${add(`<< /First ${first} 0 R /Last ${first} 0 R >>`)} 0 R`;
  const root = add(`<< /Type /Catalog /Pages ${tree} 0 R ${outlines} ${catalog} >>`);
  return written(objects, `/Root ${root} 0 R ${info} ${trailer}`);
}

function written(objects: readonly Buffer[], trailer: string): Uint8Array {
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n')];
  let length = parts[0]?.length ?? 0;
  const offsets = objects.map((body, i) => {
    const whole = Buffer.concat([Buffer.from(`${i + 1} 0 obj\n`), body, Buffer.from('\nendobj\n')]);
    parts.push(whole);
    length += whole.length;
    return length - whole.length;
  });
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  parts.push(Buffer.from(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`));
  parts.push(Buffer.from(`trailer\n<< /Size ${objects.length + 1} ${trailer} >>\nstartxref\n${length}\n%%EOF\n`));
  return new Uint8Array(Buffer.concat(parts));
}

/** Prose of a column: one line under the other, from `y` down. */
export function column(
  lines: readonly string[],
  { x = 72, y = 100, leading = 12, size = 10, font = 'regular' }: Partial<Omit<PdfLine, 'text'>> & { readonly leading?: number } = {},
): PdfLine[] {
  return lines.map((text, i) => ({ text, x, y: y + i * leading, size, font }));
}
