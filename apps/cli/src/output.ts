export interface Terminal {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/**
 * Writes data to stdout, and everything else to stderr.
 * Escapes control characters, except in `stream`. With `json`, each `data` is one line of JSON.
 */
export class Output {
  #status = '';

  constructor(
    private readonly stdout: Terminal,
    private readonly stderr: Terminal,
    readonly json: boolean,
  ) {}

  /** Prints one value. An empty text prints nothing for people. */
  data(value: unknown, text: string): void {
    this.#clear();
    const shown = this.json ? printableJson(JSON.stringify(value)) : printable(text);
    this.stdout.write(shown === '' || (!this.json && shown.endsWith('\n')) ? shown : `${shown}\n`);
    this.#draw();
  }

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

  /** Shows a line below all output, on a terminal only. The next status overwrites the line; '' removes it. */
  status(text: string): void {
    const shown = printable(text).replaceAll('\n', ' ');
    if (this.stderr.isTTY !== true || shown === this.#status) return;
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

const BAR_WIDTH = 40;

export function bars(rows: ReadonlyArray<readonly [label: string, value: number]>): string {
  const largest = Math.max(1, ...rows.map(([, value]) => value));
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows
    .map(
      ([label, value]) => `${label.padEnd(width)}  ${'█'.repeat(Math.round((value / largest) * BAR_WIDTH))}${value > 0 ? ' ' : ''}${value}`,
    )
    .join('\n');
}

export const plural = (n: number, one: string) => `${n} ${n === 1 ? one : `${one}s`}`;

export function firstLine(text: string, width = 80): string {
  const [line = ''] = text.trim().split('\n', 1);
  return line.length > width ? `${line.slice(0, width - 1)}…` : line;
}

/**
 * Control characters (C0, DEL, C1) except line feed and tab, and controls of text direction. Texts from other users may contain them to
 * move a terminal's cursor, change its title, or hide text.
 */
const CONTROLS = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;

const unicode = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
const escape = (char: string) => (char.charCodeAt(0) < 256 ? unicode(char).replace('u00', 'x') : unicode(char));

/** Text for people: controls are escaped as "\x1b", and CR LF becomes a line feed. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(CONTROLS, escape);

/** Escapes the control characters of a JSON text, which keeps its meaning. */
export const printableJson = (json: string): string => json.replace(CONTROLS, unicode);
