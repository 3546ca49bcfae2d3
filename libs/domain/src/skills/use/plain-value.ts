/**
 * What a call returned, as plain JSON: sets as lists, dictionaries with other keys than text as lists of pairs, complex numbers as
 * pairs, bytes as base64, numbers that JSON does not have as texts. See `RunResult.value`; keys that begin with "$" are always the
 * sandbox's own. A skill's `outputSchema` describes this.
 */
export function plainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainValue);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value);
  const [key, content] = entries[0] ?? [];
  if (key === '$dict' && isTexted(content)) return Object.fromEntries(content.map(([name, item]) => [name, plainValue(item)]));
  if (key?.startsWith('$') && entries.length === 1) return plainValue(content);
  return Object.fromEntries(entries.map(([name, item]) => [name, plainValue(item)]));
}

/** Pairs whose keys are all texts: one of them begins with "$", which the sandbox does not write as a key. */
function isTexted(pairs: unknown): pairs is ReadonlyArray<readonly [string, unknown]> {
  return Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && typeof pair[0] === 'string');
}
