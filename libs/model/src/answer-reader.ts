import { EtudeError } from '@etude/contracts/errors';
import { type Answer, AnswerAssembler } from './chat-answer.js';
import { faultError, quoted, type ServerContext, serverName } from './server-errors.js';
import type { Progress } from './transport.js';

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

/** A whole completion may be longer than its text: escapes, and what else servers put in. */
const BODY_OVER_TEXT = 16;

/**
 * Reads the body of a chat completion, whatever it is: server-sent events, one JSON document, or JSON line by line.
 *
 * What it is, is told from its first character: servers ignore `stream`, and content types lie.
 */
export class AnswerReader {
  readonly #assembler: AnswerAssembler;
  readonly #context: ServerContext;
  readonly #bodyCharsMax: number;
  readonly #lines = new LineSplitter();
  readonly #events = new ServerEvents();
  #kind: 'nothing' | 'document' | 'events' = 'nothing';
  #document = '';
  #done = false;
  #garbled: string | null = null;
  #foreign: string | null = null;
  #dataSeen = false;

  constructor(textBytesMax: number, context: ServerContext) {
    this.#assembler = new AnswerAssembler(textBytesMax);
    this.#context = context;
    this.#bodyCharsMax = textBytesMax * BODY_OVER_TEXT;
  }

  push(text: string): Progress {
    if (this.#kind === 'nothing') {
      const first = /[^\s\uFEFF]/.exec(text)?.[0];
      if (first === undefined) return 'more';
      this.#kind = first === '{' ? 'document' : 'events';
      return this.push(text.trimStart());
    }
    if (this.#kind === 'events') return this.#pushEvents(text);
    this.#document += text;
    return this.#document.length > this.#bodyCharsMax ? 'full' : 'more';
  }

  /** @throws EtudeError MODEL_ANSWER_EMPTY, MODEL_ANSWER_TRUNCATED, MODEL_REFUSED, or what the server's own error says */
  end(): Answer {
    if (this.#kind === 'document') this.#endDocument();
    if (this.#kind === 'events') this.#endEvents();
    const { fault, full, empty } = this.#assembler;
    if (fault) throw faultError(fault, this.#context);
    if (full && !empty) return this.#assembler.answer();
    if (this.#foreign !== null && !this.#dataSeen) throw this.#noCompletion(this.#foreign);
    if (this.#kind === 'events' && !this.#done && !this.#assembler.finished) throw this.#truncated();
    if (empty) throw this.#empty();
    return this.#assembler.answer();
  }

  #pushEvents(text: string): Progress {
    for (const line of this.#lines.push(text)) {
      this.#take(this.#events.line(line));
      if (this.#done) return 'done';
      if (this.#assembler.full || this.#assembler.fault) return 'full';
    }
    if (this.#lines.restLength > this.#bodyCharsMax) return 'full';
    return this.#assembler.finished ? 'enough' : 'more';
  }

  #take(event: ServerEvent | null): void {
    if (event?.kind === 'done') this.#done = true;
    if (event?.kind === 'garbled') this.#garbled ??= event.text;
    if (event?.kind === 'foreign') this.#foreign ??= event.text;
    if (event?.kind !== 'data') return;
    this.#dataSeen = true;
    this.#assembler.accept(event.value);
  }

  #endDocument(): void {
    try {
      this.#assembler.accept(JSON.parse(this.#document.trim()));
      return;
    } catch {
      // Not one document: lines of them, or one that was cut.
    }
    const events = this.#document.split(/\r?\n/).map((line) => this.#events.line(line));
    [...events, this.#events.end()].forEach((event) => this.#take(event));
    if (this.#done || this.#assembler.finished || this.#assembler.fault) return;
    if (this.#document.length <= this.#bodyCharsMax) throw this.#truncated();
    this.#salvage(this.#document);
  }

  #endEvents(): void {
    const rest = this.#lines.flush();
    if (rest.length > this.#bodyCharsMax) return this.#salvage(rest);
    if (!this.#done && rest !== '') this.#take(this.#events.line(rest));
    if (!this.#done) this.#take(this.#events.end());
  }

  /** Of one document that grew too long, the text as far as it was read. */
  #salvage(document: string): void {
    const start = /"content"\s*:\s*"/.exec(document);
    if (start)
      this.#assembler.accept({ choices: [{ delta: { content: jsonStringStart(document.slice(start.index + start[0].length)) } }] });
    this.#assembler.full = true;
  }

  #truncated(): EtudeError {
    const garbled = this.#garbled === null ? '' : ` Its last part reads: ${quoted(this.#garbled, this.#context)}.`;
    return new EtudeError('MODEL_ANSWER_TRUNCATED', `${serverName(this.#context)} cut its answer off before the end.${garbled}`);
  }

  #empty(): EtudeError {
    const { finishReason } = this.#assembler;
    const body = this.#document === '' ? '' : ` It sent: ${quoted(this.#document, this.#context)}`;
    return new EtudeError(
      'MODEL_ANSWER_EMPTY',
      `${serverName(this.#context)} answered without any text${finishReason ? ` (finish reason ${finishReason})` : ''}.${body}`,
    );
  }

  #noCompletion(text: string): EtudeError {
    const { baseUrl } = this.#context.settings;
    return new EtudeError(
      'MODEL_REFUSED',
      `${serverName(this.#context)} answered something that is no chat completion: ${quoted(text, this.#context)} Check ${baseUrl}; it usually ends with /v1.`,
    );
  }
}

/** Decodes a JSON string that may lack its end. */
function jsonStringStart(raw: string): string {
  const whole = /^(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*/.exec(raw.slice(0, 64 * 1024 * 1024))?.[0] ?? '';
  try {
    return String(JSON.parse(`"${whole}"`));
  } catch {
    return '';
  }
}
