/** Most lines of code that the model is shown of one episode. */
const LINES_MAX = 40;
const CONTEXT_LINES = 2;

/**
 * The lines of the accepted code that differ from the failed code, after "+", and those that they replaced, after "-". The beginning of the
 * accepted code where no attempt failed, or where nothing was kept.
 */
export function shownCode(accepted: string, failed: string | null): string {
  const after = accepted.trimEnd().split('\n');
  const before = failed?.trimEnd().split('\n') ?? [];
  const head = commonLines(before, after);
  const tail = commonLines(before.slice(head).toReversed(), after.slice(head).toReversed());
  if (head + tail === 0) return firstLines(after).join('\n');
  const [until, from] = [after.length - tail, Math.max(0, head - CONTEXT_LINES)];
  return [
    ...after.slice(from, head).map((line) => ` ${line}`),
    ...firstLines(before.slice(head, before.length - tail)).map((line) => `-${line}`),
    ...firstLines(after.slice(head, until)).map((line) => `+${line}`),
    ...after.slice(until, until + CONTEXT_LINES).map((line) => ` ${line}`),
  ].join('\n');
}

function commonLines(a: readonly string[], b: readonly string[]): number {
  const differs = a.findIndex((line, at) => line !== b[at]);
  return differs < 0 ? a.length : differs;
}

function firstLines(lines: readonly string[]): readonly string[] {
  return lines.length <= LINES_MAX ? lines : [...lines.slice(0, LINES_MAX), `[${lines.length - LINES_MAX} more lines]`];
}
