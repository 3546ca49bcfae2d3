import { EtudeError } from '@etude/contracts/errors';

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
