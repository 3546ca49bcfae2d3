import { EtudeError } from '@etude/contracts/errors';
import { QdrantClient } from '@qdrant/js-client-rest';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { failureOf } from './qdrant-failure.js';

export interface QdrantServerOptions {
  /** With "http" or "https"; port 6333 where it names none. */
  readonly url: string;
  readonly apiKey?: string | null;
  /** File in PEM of the authority that signed the server's certificate; trusted by the whole process from then on. */
  readonly caPath?: string | null;
  /** Of one request, in ms. */
  readonly timeoutMs: number;
}

const TRIES_MAX = 4;
const WAIT_MS = 50;
const WAIT_MS_MAX = 2_000;
const DEFAULT_PORT = 6333;

/**
 * Asks a Qdrant server, again where the failure may pass. Every request of this adapter may be repeated: see `RecordWrites`.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL, NOT_FOUND, INTERNAL
 */
export class QdrantServer {
  /** Address without credentials, for messages. */
  readonly where: string;
  readonly #client: QdrantClient;
  readonly #secret: string | null;
  #closed = false;

  constructor(options: QdrantServerOptions) {
    const url = parseUrl(options.url);
    this.where = url.origin;
    this.#secret = options.apiKey || null;
    if (this.#secret !== null) requireSendable(this.#secret);
    if (options.caPath) trust(options.caPath);
    this.#client = new QdrantClient({
      host: url.hostname,
      port: portOf(url, options.url),
      https: url.protocol === 'https:',
      prefix: url.pathname === '/' ? '' : url.pathname.replace(/\/$/, ''),
      timeout: options.timeoutMs,
      checkCompatibility: false,
      // Compressed answers come in pieces that wait 40 ms for a delayed acknowledgement.
      headers: { 'accept-encoding': 'identity', ...(this.#secret === null ? {} : { 'api-key': this.#secret }) },
    });
  }

  /** @param what in a message behind "was asked to" */
  async ask<T>(what: string, request: (client: QdrantClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closed) throw new EtudeError('MEMORY_UNAVAILABLE', `the memory at ${this.where} was closed; open it again`);
      try {
        return await request(this.#client);
      } catch (thrown) {
        const { error, retry, afterMs } = failureOf(thrown, what, this.where, this.#secret);
        if (!retry || tries === TRIES_MAX) throw error;
        await sleep(Math.min(WAIT_MS_MAX, afterMs ?? WAIT_MS * 4 ** (tries - 1)));
      }
    }
  }

  close(): void {
    this.#closed = true;
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new EtudeError('INVALID_ARGUMENT', "the address of Qdrant is not a URL with http or https, such as 'http://localhost:6333'");
  }
  return url;
}

/** @throws EtudeError INVALID_ARGUMENT for what no header may have */
function requireSendable(key: string): void {
  if (/^[\t\x20-\x7e\n\r]+$/.test(key)) return;
  throw new EtudeError(
    'INVALID_ARGUMENT',
    'the API key of Qdrant has other characters than ASCII; give the one that the server was started with',
  );
}

/** URL drops the usual port of its protocol, which is not Qdrant's. */
function portOf(url: URL, text: string): number {
  if (url.port !== '') return Number(url.port);
  const named = /^https?:\/\/(?:[^/@]*@)?(?:\[[^\]]*\]|[^/:]*):(\d+)/i.exec(text)?.[1];
  return named === undefined ? DEFAULT_PORT : Number(named);
}

/** Qdrant's client makes its own connections and takes no authority for them, so it is added to those of the process. */
function trust(path: string): void {
  const known = getCACertificates('default');
  try {
    const added = readFileSync(path, 'utf8');
    // Throws for what is no certificate, which is passed over below.
    void new X509Certificate(added);
    if (!known.includes(added)) setDefaultCACertificates([...known, added]);
  } catch (cause) {
    const message = `the file ${path} with the authority of Qdrant's certificate cannot be used: ${(cause as Error).message}`;
    throw new EtudeError('INVALID_ARGUMENT', message, {}, { cause });
  }
}
