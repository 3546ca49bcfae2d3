/** Begins texts that are stored as JSON of themselves. */
const MARK = '\u0001';

/**
 * A text as Qdrant can keep it: JSON of the same in ASCII where it has half a surrogate pair, which Qdrant refuses, or begins
 * with our mark. Equal texts stay equal and different ones different, so it serves in filters too.
 */
export function encodeText(text: string): string {
  return text.isWellFormed() && !text.startsWith(MARK) ? text : MARK + JSON.stringify(text);
}

export function decodeText(stored: string): string {
  return stored.startsWith(MARK) ? (JSON.parse(stored.slice(MARK.length)) as string) : stored;
}

/** In the order of code points, which is that of the bytes in UTF-8. */
export function compareCodePoints(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i += 1) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
