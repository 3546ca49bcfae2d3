export interface Terminal {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

const NOTE_EVERY_MS = 10_000;

/**
 * Data on stdout, everything else on stderr.
 *
 * Control characters are escaped, except in what code printed. With `json`, each `data` is one line of JSON. `status` is a line that is overwritten; only a terminal sees it.
 */
export class Output {
  #status = '';
  #notedAt = performance.now();

  constructor(
    private readonly stdout: Terminal,
    private readonly stderr: Terminal,
    readonly json: boolean,
  ) {}

  get live(): boolean {
    return this.stderr.isTTY === true;
  }

  /** Prints one value. An empty text prints nothing for people. */
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

  /** How far a long work is: as `status`, and off a terminal a note now and then. */
  progress(text: string): void {
    this.status(text);
    if (this.live || performance.now() - this.#notedAt < NOTE_EVERY_MS) return;
    this.note(text);
    this.#notedAt = performance.now();
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
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const widths = (rows[0] ?? []).map((_cell, column) => widthOf(column));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export const plural = (n: number, one: string, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/** The first line, cut with an ellipsis. */
export function firstLine(text: string, width = 80): string {
  const [line = ''] = text.trim().split('\n', 1);
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}

/**
 * C0 but line feed and tab, DEL, C1, and what turns the direction of text: names and texts that others wrote could move a terminal's
 * cursor with them, change its title, or show something else than is there.
 */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

const escape = (char: string) => {
  const code = char.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
};

/** For people: controls as "\x1b", lines that end with CR LF as lines. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(CONTROLS, escape);

/** JSON with the same meaning, which is as safe to show. */
export const printableJson = (json: string): string =>
  json.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
