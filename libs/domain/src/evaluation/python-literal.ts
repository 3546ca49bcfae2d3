/** A JSON value the way Python writes it, sandbox encodings (`{"$set": [...]}`) included. */
export function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const [key, content] = Object.entries(value)[0] ?? [];
  if (key === '$set' && Array.isArray(content)) return content.length === 0 ? 'set()' : `{${content.map(pythonLiteral).join(', ')}}`;
  if ((key === '$int' || key === '$repr') && typeof content === 'string') return content;
  if (key === '$float' && typeof content === 'string') return `float(${JSON.stringify(content)})`;
  const entries = key === '$dict' && Array.isArray(content) ? (content as Array<[unknown, unknown]>) : Object.entries(value);
  return `{${entries.map(([name, item]) => `${pythonLiteral(name)}: ${pythonLiteral(item)}`).join(', ')}}`;
}

/** A call as Python writes it: `solve([1, 2], base=10)`. */
export function pythonCall(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(kwargs).map(([key, value]) => `${key}=${pythonLiteral(value)}`);
  return `${name}(${[...args.map(pythonLiteral), ...named].join(', ')})`;
}
