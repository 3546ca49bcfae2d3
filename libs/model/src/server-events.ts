/** Splits a text stream into lines, whatever their endings; keeps at most one unfinished line. */
export class LineSplitter {
  #rest = '';

  push(text: string): string[] {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    return lines;
  }

  get restLength(): number {
    return this.#rest.length;
  }

  /** The last line, if the stream ended without a line end. */
  flush(): string {
    const rest = this.#rest.replace(/\r$/, '');
    this.#rest = '';
    return rest;
  }
}

export type ServerEvent =
  | { readonly kind: 'data'; readonly value: unknown }
  | { readonly kind: 'done' }
  | { readonly kind: 'garbled' | 'foreign'; readonly text: string };

/**
 * Server-sent events whose data is JSON, read generously: a data line that is JSON by itself is an event even where the blank
 * line is missing, and lines of bare JSON count too. `garbled` is data that never became JSON, `foreign` a line of something else.
 */
export class ServerEvents {
  #data = '';

  /** One line without its end; a blank one ends an event. */
  line(line: string): ServerEvent | null {
    if (line.trim() === '') return this.end();
    if (line.startsWith(':')) return null;
    const field = /^(data|event|id|retry)(?::|$)/.exec(line)?.[1];
    if (field === undefined && !line.startsWith('{') && this.#data === '') return { kind: 'foreign', text: line };
    if (field !== undefined && field !== 'data') return null;
    this.#data += (this.#data ? '\n' : '') + line.replace(/^data(: ?|$)/, '');
    if (this.#data.trim() === '[DONE]') {
      this.#data = '';
      return { kind: 'done' };
    }
    const value = parsed(this.#data);
    if (value === undefined) return null;
    this.#data = '';
    return { kind: 'data', value };
  }

  end(): ServerEvent | null {
    if (this.#data === '') return null;
    const text = this.#data;
    this.#data = '';
    return { kind: 'garbled', text };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
