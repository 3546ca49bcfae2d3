import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { QdrantClient } from '@qdrant/js-client-rest';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

export interface QdrantServerOptions {
  /** An http or https URL; port 6333 if it names none. */
  readonly url: string;
  readonly apiKey?: string | null;
  /** PEM file of the authority that signed the server's certificate. The whole process trusts it from then on. */
  readonly caPath?: string | null;
  /** Time limit of one request to Qdrant, in ms. */
  readonly timeoutMs: number;
  /** Copies of each record in collections that this process creates; each write waits for all copies. Default: the server's own. */
  readonly replicas?: number | undefined;
}

const TRIES_MAX = 4;
const WAIT_MS = 50;
const DEFAULT_PORT = 6333;

/**
 * Sends requests to a Qdrant server and retries transient failures. Every request of this adapter may be repeated: see `writeRecords`.
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL, NOT_FOUND, INTERNAL
 */
export class QdrantServer {
  /** Address without credentials, for messages. */
  readonly where: string;
  readonly replicas: number | undefined;
  readonly #client: QdrantClient;
  readonly #secret: string | null;
  #closed = false;

  constructor(options: QdrantServerOptions) {
    const url = new URL(options.url);
    this.where = url.origin;
    this.replicas = options.replicas;
    this.#secret = options.apiKey || null;
    if (options.caPath) trust(options.caPath);
    this.#client = new QdrantClient({
      host: url.hostname,
      port: portOf(options.url),
      https: url.protocol === 'https:',
      prefix: url.pathname === '/' ? '' : url.pathname.replace(/\/$/, ''),
      timeout: options.timeoutMs,
      checkCompatibility: false,
      // Compressed answers arrive in pieces, and TCP delays each piece by 40 ms until the previous piece is acknowledged.
      headers: { 'accept-encoding': 'identity', ...(this.#secret === null ? {} : { 'api-key': this.#secret }) },
    });
  }

  /** @param what completes "was asked to ..." in error messages */
  async ask<T>(what: string, request: (client: QdrantClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closed) throw new EtudeError('MEMORY_UNAVAILABLE', `the memory at ${this.where} was closed; open it again`);
      try {
        return await request(this.#client);
      } catch (thrown) {
        const { error, retry } = failureOf(thrown, what, this.where, this.#secret);
        if (!retry || tries === TRIES_MAX) throw error;
        await sleep(WAIT_MS * 4 ** (tries - 1));
      }
    }
  }

  close(): void {
    this.#closed = true;
  }
}

/** The port in the text. `URL` drops the protocol's default port, which differs from Qdrant's. */
function portOf(text: string): number {
  return Number(/:(\d+)(?:[/?#]|$)/.exec(text)?.[1] ?? DEFAULT_PORT);
}

/** Adds the authority to the authorities of the process, because Qdrant's client has no option for it. */
function trust(path: string): void {
  const known = getCACertificates('default');
  try {
    const added = readFileSync(path, 'utf8');
    // Throws for a file without a certificate, because `setDefaultCACertificates` would ignore it.
    void new X509Certificate(added);
    if (!known.includes(added)) setDefaultCACertificates([...known, added]);
  } catch (cause) {
    const message = `the file ${path} of ETUDE_QDRANT_CA_PATH cannot be used as the authority of Qdrant's certificate: ${(cause as Error).message}`;
    throw new EtudeError('INVALID_ARGUMENT', message, {}, { cause });
  }
}

interface Thrown {
  readonly name?: string;
  readonly message?: string;
  readonly status?: number;
  readonly statusText?: string;
  readonly data?: { readonly status?: { readonly error?: unknown } | null } | null;
  readonly code?: string;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

interface Reply {
  readonly status: number;
  readonly said: string;
}

interface Known {
  readonly is: (reply: Reply) => boolean;
  readonly code: ErrorCode;
  readonly text: string;
  readonly retry?: boolean;
}

const NO_ROOM = /no space left|disk (?:is )?full|not enough (?:disk )?space|available disk space|out of disk|storage size limit/i;
/** Qdrant's message if the model was dropped meanwhile. */
const NO_VECTOR = /not existing vector name/i;
const NO_COLLECTION = /collection .*(?:doesn't exist|not found)/i;
/** Transient statuses: from gateways, and from servers that start, stop or are busy. */
const PASSING = new Set([408, 425, 500, 502, 503, 504]);
const SAID_CHARS_MAX = 300;

const UNAVAILABLE = 'MEMORY_UNAVAILABLE';
const isFull = ({ status, said }: Reply) => status === 507 || NO_ROOM.test(said);
const isMissing = ({ status, said }: Reply) => status === 404 || (status === 400 && NO_VECTOR.test(said));
/** The first match applies. Each text stands between "Qdrant at ADDRESS was asked to ..." and the server's own words. */
const REPLIES: readonly Known[] = [
  {
    is: isFull,
    code: 'MEMORY_FULL',
    text: 'and has no room left; free space on its disk, then repeat the write. Nothing of the write was stored',
  },
  { is: ({ status }) => status === 401 || status === 403, code: UNAVAILABLE, text: 'and refused our API key; check ETUDE_QDRANT_API_KEY' },
  { is: ({ status }) => status === 429, code: UNAVAILABLE, text: 'and gets too many requests; try again later', retry: true },
  { is: ({ said }) => NO_COLLECTION.test(said), code: UNAVAILABLE, text: 'and has lost a collection; restore it from a snapshot' },
  { is: isMissing, code: 'NOT_FOUND', text: 'and found nothing' },
  { is: ({ status }) => PASSING.has(status), code: UNAVAILABLE, text: 'and failed; see its log', retry: true },
  { is: () => true, code: 'INTERNAL', text: 'and refused it' },
];

const UNREACHED =
  'but cannot be reached; check that it runs, and that ETUDE_QDRANT_URL has the right address, port and "http" or "https"; ' +
  'if the system does not know its certificate, set ETUDE_QDRANT_CA_PATH';

/** `retry`: whether to send the request again. The message never has the API key, not even if the server repeats it. */
function failureOf(thrown: unknown, what: string, where: string, secret: string | null): { error: EtudeError; retry: boolean } {
  const failure = thrown as Thrown;
  const hide = (text: string) => (secret ? text.replaceAll(secret, '***') : text);
  const made = (code: ErrorCode, message: string, retry: boolean) => {
    return { error: new EtudeError(code, `Qdrant at ${where} was asked to ${what} ${message}`, {}, { cause: thrown }), retry };
  };
  if (failure.name === 'QdrantClientTimeoutError' || failure.name === 'TimeoutError')
    return made(UNAVAILABLE, 'and did not answer in time; see whether it is overloaded, or raise the time limit', false);
  const status = failure.name === 'QdrantClientResourceExhaustedError' ? 429 : failure.status;
  if (typeof status === 'number') {
    const reply = { status, said: hide(saidBy(failure)).slice(0, SAID_CHARS_MAX) };
    const { code, text, retry = false } = REPLIES.find(({ is }) => is(reply))!;
    return made(code, `${text} (${status}: ${reply.said})`, retry);
  }
  const { code, message } = innermost(failure);
  return made(UNAVAILABLE, `${UNREACHED} (${hide(code ? `${code}: ${message}` : message)})`, true);
}

function saidBy({ data, statusText, message }: Thrown): string {
  const said = data?.status?.error ?? (typeof data === 'string' ? data : undefined) ?? statusText ?? message ?? '';
  return typeof said === 'string' ? said : JSON.stringify(said);
}

/** `fetch` says only "fetch failed". The reason is in its cause, perhaps several levels down. */
function innermost(thrown: Thrown): { code: string; message: string } {
  const next = (thrown.cause ?? thrown.errors?.[0]) as Thrown | null | undefined;
  if (next && typeof next === 'object') return innermost(next);
  return { code: typeof thrown.code === 'string' ? thrown.code : '', message: thrown.message ?? 'no reason given' };
}
