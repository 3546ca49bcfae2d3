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

/** A piece of a document, small enough to be embedded and found by its content. */
export interface Chunk {
  /** Counted from 0, in the order of the document. */
  readonly index: number;
  readonly headings: readonly string[];
  readonly text: string;
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
  /** The most bytes of the file. */
  bytesMax: 64 * 2 ** 20,
  /** The most characters of all text read from it. */
  charsMax: 20_000_000,
  /** The most pages of a PDF. */
  pagesMax: 5_000,
};

export function tooLarge(name: string, what: string, advice: string): EtudeError {
  return new EtudeError('PAYLOAD_TOO_LARGE', `${JSON.stringify(name)} ${what}; ${advice}`);
}

export function unreadable(name: string, what: string, cause?: unknown): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(name)} ${what}`, {}, { cause });
}
