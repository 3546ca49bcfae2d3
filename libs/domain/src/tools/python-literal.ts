const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' };
const ESCAPED = /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))/gs;
const TEXT = /^(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")$/s;
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/;

/** The value of a `repr` that is a text, a number or a truth value, as JSON and UTF-8 have them; of any other the `repr` itself. */
export function literalOf(repr: string): unknown {
  if (repr === 'True' || repr === 'False') return repr === 'True';
  if (NUMBER.test(repr)) {
    const value = Number(repr);
    return Number.isSafeInteger(value) || /[.e]/.test(repr) ? value : repr;
  }
  if (!TEXT.test(repr)) return repr;
  const text = repr.slice(1, -1).replace(ESCAPED, unescaped);
  return text.isWellFormed() ? text : repr;
}

function unescaped(whole: string, ...[x, u, U, one]: Array<string | undefined>): string {
  const hex = x ?? u ?? U;
  if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
  return ESCAPES[one ?? ''] ?? whole;
}
