/**
 * What a call returned, as plain JSON: sets as lists, dictionaries with other keys than text as lists of pairs, complex numbers as
 * pairs, bytes as base64, numbers that JSON does not have as texts. See `RunResult.value`; keys that begin with "$" are always the
 * sandbox's own.
 */
export function plainValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainValue);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value);
  const [key, content] = entries[0] ?? [];
  if (key?.startsWith('$') && entries.length === 1) return plainValue(content);
  return Object.fromEntries(entries.map(([name, item]) => [name, plainValue(item)]));
}
