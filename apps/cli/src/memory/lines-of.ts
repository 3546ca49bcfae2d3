import { createReadStream } from 'node:fs';

/**
 * The lines of a file of JSON Lines, without their ends: a line feed, or both of a carriage return and one. Nothing else ends a line:
 * JSON has U+2028 and U+2029 in its strings as they are, at which `node:readline` cuts.
 *
 * @param bytesMax of the beginning, to look no further
 */
export async function* linesOf(path: string, bytesMax = Infinity): AsyncGenerator<string> {
  let rest = '';
  const stream = createReadStream(path, { encoding: 'utf8', end: bytesMax });
  for await (const text of stream as AsyncIterable<string>) {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? '';
    for (const line of lines) yield withoutReturn(line);
  }
  if (rest !== '') yield withoutReturn(rest);
}

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line);
