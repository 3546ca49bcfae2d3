import { printable, printableJson } from './control-characters.js';

export interface Terminal {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/**
 * Data on stdout, everything else on stderr.
 *
 * Control characters are escaped, except in what code printed. With `json`, each `data` is one line of JSON. `status` is a line that is overwritten; only a terminal sees it.
 */
export class Output {
  #status = '';

  constructor(
    private readonly stdout: Terminal,
    private readonly stderr: Terminal,
    readonly json: boolean,
  ) {}

  get live(): boolean {
    return this.stderr.isTTY === true;
  }

  /** Where `text` is empty, it has been said to people in other words. */
  data(value: unknown, text: string): void {
    this.#clear();
    const shown = this.json ? printableJson(JSON.stringify(value)) : printable(text);
    this.stdout.write(shown === '' || (!this.json && shown.endsWith('\n')) ? shown : `${shown}\n`);
    this.#draw();
  }

  /** What code printed, as it is: on the stream of the same name, without a line break of ours. */
  stream(to: 'stdout' | 'stderr', text: string): void {
    this.#clear();
    (to === 'stdout' ? this.stdout : this.stderr).write(text);
    if (text.endsWith('\n')) this.#draw();
  }

  note(text: string): void {
    this.#clear();
    this.stderr.write(`${printable(text)}\n`);
    this.#draw();
  }

  /** '' removes it. */
  status(text: string): void {
    const shown = printable(text).replaceAll('\n', ' ');
    if (!this.live || shown === this.#status) return;
    this.#clear();
    this.#status = shown;
    this.#draw();
  }

  #clear(): void {
    if (this.#status) this.stderr.write('\r\u001b[K');
  }

  #draw(): void {
    if (this.#status) this.stderr.write(this.#status.slice(0, (this.stderr.columns ?? 80) - 1));
  }
}

/** Left-aligned columns, two spaces apart; the last one is as wide as it likes. */
export function table(rows: ReadonlyArray<readonly string[]>): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? 0, cell.length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export const plural = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

const LINES_LOOKED_AT = 10;
const isFence = (line: string) => /^\s*(?:```|~~~)/.test(line);

/** The first line that says something, cut with an ellipsis. */
export function firstLine(text: string, width = 80): string {
  const lines = text.trim().split('\n', LINES_LOOKED_AT);
  const line = (lines.find((one) => one.trim() !== '' && !isFence(one)) ?? lines[0] ?? '').trim();
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}
