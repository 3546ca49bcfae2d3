import { printable } from '../control-characters.js';

const RESET = '\u001b[0m';
const COLOURS: ReadonlyArray<readonly [RegExp, string]> = [
  [/^(?:---|\+\+\+) /, '\u001b[1m'],
  [/^@@ /, '\u001b[36m'],
  [/^\+/, '\u001b[32m'],
  [/^-/, '\u001b[31m'],
];

/**
 * A unified diff for a terminal. Control characters of the diff itself are escaped here, since what is printed with colours cannot be
 * escaped as a whole behind it.
 */
export function colouredDiff(diff: string): string {
  return printable(diff)
    .split('\n')
    .map((line) => {
      const colour = COLOURS.find(([pattern]) => pattern.test(line))?.[1];
      return colour === undefined ? line : `${colour}${line}${RESET}`;
    })
    .join('\n');
}
