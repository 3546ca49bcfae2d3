import { EtudeError } from '@etude/contracts/errors';

/** The limits of one document. They are checked while parsing, not after. */
export interface ParseLimits {
  /** The most bytes of the file. */
  readonly bytesMax: number;
  /** The most characters of all text read from it. */
  readonly charsMax: number;
  /** The deepest nesting of elements (HTML), or of quotes and lists (Markdown). */
  readonly nestingMax: number;
  /** The most pages of a PDF. */
  readonly pagesMax: number;
}

export const PARSE_LIMITS: ParseLimits = {
  bytesMax: 64 * 2 ** 20,
  charsMax: 20_000_000,
  nestingMax: 512,
  pagesMax: 5_000,
};

export interface ParseOptions {
  /** Name of the file, used in messages and as the title of a document that has none. */
  readonly name: string;
  readonly limits?: Partial<ParseLimits>;
}

export interface ParseContext {
  readonly name: string;
  readonly limits: ParseLimits;
  readonly signal: AbortSignal;
}

export function tooLarge(name: string, what: string, advice: string): EtudeError {
  return new EtudeError('PAYLOAD_TOO_LARGE', `${JSON.stringify(name)} ${what}; ${advice}`);
}

export function unreadable(name: string, what: string, cause?: unknown): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(name)} ${what}`, {}, { cause });
}

export function nestedTooDeep({ name, limits }: Pick<ParseContext, 'name' | 'limits'>): EtudeError {
  return unreadable(name, `is nested deeper than ${limits.nestingMax} levels; that is no document to read, or its tags are not closed`);
}
