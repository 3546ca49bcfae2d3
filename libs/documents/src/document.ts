import { EtudeError } from '@etude/contracts/errors';

export interface ParsedDocument {
  readonly title: string;
  readonly sections: readonly Section[];
}

export interface Section {
  /** Headings from the outermost to the innermost, such as `['2 Searching', '2.1 Binary search']`; empty before the first heading. */
  readonly headings: readonly string[];
  /** Plain text with an empty line between paragraphs; code keeps its lines. */
  readonly text: string;
  /** Page of the first line, from 1; null where the format has no pages. */
  readonly page: number | null;
}

export const MEDIA_TYPES = ['text/markdown', 'text/plain', 'text/html', 'application/pdf'] as const;
export type MediaType = (typeof MEDIA_TYPES)[number];

const BY_EXTENSION: Readonly<Record<string, MediaType>> = {
  md: 'text/markdown',
  markdown: 'text/markdown',
  mdx: 'text/markdown',
  txt: 'text/plain',
  text: 'text/plain',
  rst: 'text/plain',
  html: 'text/html',
  htm: 'text/html',
  xhtml: 'text/html',
  pdf: 'application/pdf',
};

/** The media type by the file's extension; the parser checks the content. @throws EtudeError INVALID_ARGUMENT for any other extension */
export function mediaTypeOf(path: string): MediaType {
  const type = BY_EXTENSION[/\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''];
  if (type) return type;
  const known = Object.keys(BY_EXTENSION).map((extension) => `.${extension}`);
  const message = `the media type of ${JSON.stringify(path)} is unknown; use an extension of ${known.join(', ')}, or pass the media type`;
  throw new EtudeError('INVALID_ARGUMENT', message);
}

/** The limits of one document. They are checked while parsing, not after. */
export const PARSE_LIMITS = {
  bytesMax: 64 * 2 ** 20,
  charsMax: 20_000_000,
  pagesMax: 5_000,
};

export function tooLarge(name: string, what: string, advice: string): EtudeError {
  return new EtudeError('PAYLOAD_TOO_LARGE', `${JSON.stringify(name)} ${what}; ${advice}`);
}

export function unreadable(name: string, what: string, cause?: unknown): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(name)} ${what}`, {}, { cause });
}

/** Control characters to drop: all but tab, line feed, carriage return and form feed. */
// oxlint-disable-next-line no-control-regex -- the function drops these characters
const CONTROLS = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/g;

export function cleanText(text: string): string {
  return text
    .replaceAll(/\r\n?|\f|\u2028/g, '\n')
    .replaceAll('\u2029', '\n\n')
    .replaceAll(CONTROLS, '');
}

interface OpenSection {
  readonly headings: readonly string[];
  readonly level: number;
  readonly blocks: string[];
  page: number | null;
}

const HEADING_CHARS_MAX = 300;

/** Builds sections from headings and blocks in reading order. */
export class SectionBuilder {
  private readonly sections: Section[] = [];
  private readonly path: Array<{ readonly level: number; readonly text: string }> = [];
  private open: OpenSection = { headings: [], level: 0, blocks: [], page: null };
  private chars = 0;
  private firstHeading: string | null = null;

  constructor(private readonly name: string) {}

  /** @param level from 1, the outermost */
  heading(level: number, raw: string, page: number | null = null): void {
    const text = raw.replaceAll(/\s+/g, ' ').trim().slice(0, HEADING_CHARS_MAX).toWellFormed();
    if (text === '') return;
    this.count(text);
    this.close(level);
    while ((this.path.at(-1)?.level ?? 0) >= level) this.path.pop();
    this.path.push({ level, text });
    this.firstHeading ??= text;
    this.open = { headings: this.path.map((heading) => heading.text), level, blocks: [], page };
  }

  block(text: string, page: number | null = null): void {
    const trimmed = text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();
    if (trimmed === '') return;
    this.count(trimmed);
    this.open.page ??= page;
    this.open.blocks.push(trimmed);
  }

  /** @param title the title that the format gives; null if it gives no title */
  build(title: string | null): ParsedDocument {
    this.close(0);
    return { title: title?.replaceAll(/\s+/g, ' ').trim() || this.firstHeading || this.name, sections: this.sections };
  }

  /** Ends the open section. A section without text above a deeper heading is dropped, because the deeper heading's path names it. */
  private close(nextLevel: number): void {
    const { headings, level, blocks, page } = this.open;
    if (blocks.length === 0 && (headings.length === 0 || nextLevel > level)) return;
    this.sections.push({ headings, text: blocks.join('\n\n'), page });
  }

  private count(text: string): void {
    this.chars += text.length;
    const { charsMax } = PARSE_LIMITS;
    if (this.chars > charsMax) throw tooLarge(this.name, `holds more than ${charsMax} characters of text`, 'split it into several files');
  }
}

/** Puts code between fences, so that an empty line within it doesn't end its block. */
export function fenced(code: string, language: string): string {
  const ticks = [...code.matchAll(/`{3,}/g)].reduce((longest, [run]) => Math.max(longest, run.length + 1), 3);
  const fence = '`'.repeat(ticks);
  return `${fence}${language}\n${code.replace(/\n+$/, '')}\n${fence}`;
}

export function tableRow(cells: readonly string[]): string {
  return cells.map((cell) => cell.replaceAll(/\s+/g, ' ').trim()).join(' | ');
}
