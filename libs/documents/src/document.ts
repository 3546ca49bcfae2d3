import { EtudeError } from '@etude/contracts/errors';

/** What a document is read as: its title and its sections in order. */
export interface ParsedDocument {
  readonly title: string;
  readonly sections: readonly Section[];
}

export interface Section {
  /** Headings from the outermost in, such as `['2 Searching', '2.1 Binary search']`; empty before the first one. */
  readonly headings: readonly string[];
  /** Plain text, paragraphs separated by an empty line; code keeps its lines. */
  readonly text: string;
  /** Of its first line, from 1; null where the format has none. */
  readonly page: number | null;
}

/** A piece of a document that is small enough to be found by what it says. */
export interface Chunk {
  /** From 0, in the document's order. */
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

/** By the file's name alone; its content is checked by the parser. @throws EtudeError INVALID_ARGUMENT for any other ending */
export function mediaTypeOf(path: string): MediaType {
  const type = BY_EXTENSION[/\.([^./\\]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''];
  if (type) return type;
  const known = Object.keys(BY_EXTENSION).map((extension) => `.${extension}`);
  throw new EtudeError(
    'INVALID_ARGUMENT',
    `what ${JSON.stringify(path)} is cannot be told from its name; name it with ${known.join(', ')}, or say its media type`,
  );
}
