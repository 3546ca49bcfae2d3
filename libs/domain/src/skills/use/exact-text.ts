const HALVES = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Halves of surrogate pairs, which no UTF-8 has, as Python writes them: "\ud800". Any other text is itself. */
export const escapedText = (text: string): string =>
  text.isWellFormed() ? text : text.replace(HALVES, (half) => `\\u${half.charCodeAt(0).toString(16)}`);

/**
 * What a call returned, so that nothing of it is lost on any wire: a text that is no Unicode is `{"$repr": literal of Python}`, and an
 * object with such a key `{"$dict": [[key, value], ...]}`, as `RunResult.value` has what JSON does not know.
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
