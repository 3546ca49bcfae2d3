const MESSAGE_CHARS_MAX = 1_000_000;
const LINES_MAX = 500;

/** Lines, many in one message; a long line is a message of its own. */
export async function* inMessages(lines: AsyncIterable<string>): AsyncGenerator<{ lines: string[] }> {
  let message: string[] = [];
  let chars = 0;
  for await (const line of lines) {
    if (message.length > 0 && (chars + line.length > MESSAGE_CHARS_MAX || message.length >= LINES_MAX)) {
      yield { lines: message };
      message = [];
      chars = 0;
    }
    message.push(line);
    chars += line.length;
  }
  if (message.length > 0) yield { lines: message };
}
