import { FailedPreconditionError, NotFoundError } from './errors.js';
import { Etude } from './index.js';
import type { Execution, Sandbox } from './sandboxes.js';

export const DESCRIPTION =
  'Runs Python code in a sandbox without a network, and returns what it prints and the value of its last expression. Names and files stay for the next call.';
const SHOWN_CHARS = 20_000;
const TTL_MS = 600_000;

export interface InterpreterOptions {
  /** Default: a client of the local stack or of ETUDE_ADDRESS. */
  readonly client?: Etude;
  readonly template?: string;
  /** How long the sandbox lives after its last use; default 10 min. */
  readonly ttlMs?: number;
}

/** A code interpreter for agents of other frameworks. It opens a sandbox at the first use, and a new one once the old one has ended. */
export class Interpreter {
  readonly #client: Etude;
  #sandbox: Sandbox | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: InterpreterOptions = {}) {
    this.#client = options.client ?? new Etude();
  }

  /** Runs code. Returns its output, displayed values and error as text for a model. Runs wait for each other. */
  async run(code: string): Promise<string> {
    const run = this.#last.then(async () => shown(await (await this.#open()).run(code)));
    this.#last = run.catch(() => undefined);
    return run;
  }

  async #open(): Promise<Sandbox> {
    const { template, ttlMs = TTL_MS } = this.options;
    try {
      await this.#sandbox?.renew(ttlMs);
    } catch (error) {
      if (!(error instanceof NotFoundError || error instanceof FailedPreconditionError)) throw error;
      this.#sandbox = null;
    }
    this.#sandbox ??= await this.#client.sandboxes.create({ template, ttlMs });
    return this.#sandbox;
  }
}

function shown({ stdout, stderr, displays, ok, outcome }: Execution): string {
  const parts = [stdout, stderr, ...displays.map(({ text }) => text['text/plain'] ?? '')];
  if (!ok && stderr === '') parts.push(outcome.error ? `${outcome.error.type}: ${outcome.error.message}` : `ended by ${outcome.exit}`);
  const text = parts
    .filter((part) => part !== '')
    .map((part) => part.trimEnd())
    .join('\n');
  const half = SHOWN_CHARS / 2;
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, half)}\n[...]\n${text.slice(-half)}`;
}
