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

/**
 * What a call returned, as plain JSON: sets as lists, dictionaries with other keys than text as lists of pairs, complex numbers as
 * pairs, bytes as base64, numbers that JSON does not have as texts, and halves of surrogate pairs as their escapes. See
 * `RunResult.value`; keys that begin with "$" are always the sandbox's own. A skill's `outputSchema` describes this.
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

/** Pairs whose keys are all texts: one of them begins with "$", which the sandbox does not write as a key. */
function isTexted(pairs: unknown): pairs is ReadonlyArray<readonly [string, unknown]> {
  return Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && typeof pair[0] === 'string');
}

const NOTES: Readonly<Record<string, string>> = {
  $int: 'whole numbers beyond 2^53 are texts',
  $float: 'nan and infinities are texts',
  text: 'halves of surrogate pairs are escapes such as \\ud800',
};

/** What numbers and texts of a returned value became in `plainValue`, in a sentence; empty where all are what they were. */
export function noteOfPlainValue(value: unknown): string {
  const found = new Set<string>();
  const left: unknown[] = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'string' && !one.isWellFormed()) found.add('text');
    if (typeof one !== 'object' || one === null) continue;
    const entries = Object.entries(one);
    const [key = ''] = entries[0] ?? [];
    if (entries.length === 1 && (key === '$int' || key === '$float')) found.add(key);
    for (const [name, item] of entries) left.push(name, item);
  }
  const said = Object.entries(NOTES).filter(([kind]) => found.has(kind));
  return said.length === 0 ? '' : `In the result ${said.map(([, note]) => note).join(', and ')}.`;
}
