/**
 * C0 but line feed and tab, DEL, C1, and what turns the direction of text: names and texts that others wrote could move a terminal's
 * cursor with them, change its title, or show something else than is there.
 */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

const escape = (char: string) => {
  const code = char.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
};

/** For people: controls as "\x1b", lines that end with CR LF as lines. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(CONTROLS, escape);

/** JSON with the same meaning, which is as safe to show. */
export const printableJson = (json: string): string =>
  json.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
