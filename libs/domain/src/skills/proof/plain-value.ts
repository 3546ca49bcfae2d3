const HALVES = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** The text with lone surrogates, which UTF-8 can't hold, as Python's escapes such as "\ud800". */
export const escapedText = (text: string): string =>
  text.isWellFormed() ? text : text.replace(HALVES, (half) => `\\u${half.charCodeAt(0).toString(16)}`);

/**
 * The return value of a call, in a form that survives every wire. A text that isn't valid Unicode becomes `{"$repr": Python literal}`. An
 * object with such a key becomes `{"$dict": [[key, value], ...]}`. `RunResult.value` has the same forms for values that JSON lacks.
 */
export function exactValue(value: unknown): unknown {
  if (typeof value === 'string') return value.isWellFormed() ? value : { $repr: JSON.stringify(value) };
  if (Array.isArray(value)) return value.map(exactValue);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, exactValue(item)] as const);
  return entries.every(([key]) => key.isWellFormed())
    ? Object.fromEntries(entries)
    : { $dict: entries.map(([key, item]) => [exactValue(key), item]) };
}

/**
 * The return value of a call as plain JSON, which a skill's `outputSchema` describes. Sets become lists, complex numbers pairs, and bytes
 * base64. Dictionaries with other keys than texts become lists of pairs. Numbers that JSON lacks become texts; lone surrogates are escaped.
 * In `RunResult.value`, keys that begin with "$" are always the sandbox's own.
 */
export function plainValue(value: unknown): unknown {
  if (typeof value === 'string') return escapedText(value);
  if (Array.isArray(value)) return value.map(plainValue);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value);
  const [key, content] = entries[0] ?? [];
  if (key === '$dict' && isTexted(content)) return objectOf(content);
  if (key?.startsWith('$') && entries.length === 1) return plainValue(content);
  return objectOf(entries);
}

const objectOf = (pairs: ReadonlyArray<readonly [string, unknown]>) =>
  Object.fromEntries(pairs.map(([name, item]) => [escapedText(name), plainValue(item)]));

/** Whether all keys are texts. Then the sandbox wrote pairs only because a key begins with "$". */
function isTexted(pairs: unknown): pairs is ReadonlyArray<readonly [string, unknown]> {
  return Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && typeof pair[0] === 'string');
}

const CHANGED = /\{"\$(?:int|float)":|\\ud[89a-f]/;
const NOTE =
  'In the result whole numbers beyond 2^53, nan and infinities are texts, and halves of surrogate pairs are escapes such as \\ud800.';

/** A note on the numbers and texts that `plainValue` changes; empty where this value has no such parts. */
export const noteOfPlainValue = (value: unknown): string => (CHANGED.test(JSON.stringify(value) ?? '') ? NOTE : '');
