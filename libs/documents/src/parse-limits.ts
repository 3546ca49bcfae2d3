import { EtudeError } from '@etude/contracts/errors';

/** What one document may cost. Every one is checked while parsing, not after. */
export interface ParseLimits {
  /** Of the file. */
  readonly bytesMax: number;
  /** Of everything that is read from it, together. */
  readonly charsMax: number;
  /** Elements inside elements (HTML), quotes and lists inside each other (Markdown). */
  readonly nestingMax: number;
  /** Of a PDF. */
  readonly pagesMax: number;
}

export const PARSE_LIMITS: ParseLimits = {
  bytesMax: 64 * 2 ** 20,
  charsMax: 20_000_000,
  nestingMax: 512,
  pagesMax: 5_000,
};

export interface ParseOptions {
  /** Of the file, for messages and where the document has no title of its own. */
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
