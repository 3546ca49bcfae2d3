import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createSecureContext } from 'node:tls';
import { EtudeError } from '@etude/contracts/errors';
import { type ChannelCredentials, credentials, experimental, type ServerCredentials } from '@grpc/grpc-js';
import { z } from 'zod';
import { watchedFile } from './config.js';

/** Settings of TLS on every port for calls. Health and metrics stay plain. */
export const tlsConfig = z.object({
  /** PEM file with the certificate of this process and its chain. Unset: no TLS. A new certificate needs no restart. */
  ETUDE_TLS_CERT_PATH: z.string().min(1).optional(),
  /** PEM file with the private key of the certificate in ETUDE_TLS_CERT_PATH. */
  ETUDE_TLS_KEY_PATH: z.string().min(1).optional(),
  /** PEM file of the authorities that must have signed the callers' certificates (mutual TLS). Callers also need a key or JWT. */
  ETUDE_TLS_CLIENT_CA_PATH: z.string().min(1).optional(),
  /** PEM file of the authorities that this process trusts when it calls sandbox controllers (command line: the gateway). Unset: no TLS. */
  ETUDE_TLS_CA_PATH: z.string().min(1).optional(),
});
export type TlsConfig = z.infer<typeof tlsConfig>;

/** Name that the certificates of sandbox controllers must have, since their addresses come and go with their pods. */
const CONTROLLER_NAME = 'etude-sandbox-controller';
const LOOKED_EVERY_MS = 10_000;

interface Pem {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
}

/** The certificates of one process. Servers that use them switch to new files by themselves. */
export type ServerTls = Pick<Certificates, 'grpc' | 'httpServer' | 'close'>;

/**
 * Reads the certificate files, and checks every `everyMs` for new ones. A wrong new file is reported once, and the last good files stay in use.
 *
 * @returns null without TLS. @throws EtudeError FAILED_PRECONDITION naming the wrong setting or file
 */
export function serverTls(config: TlsConfig, report: (error: unknown) => void, everyMs = LOOKED_EVERY_MS): ServerTls | null {
  const { ETUDE_TLS_CERT_PATH: certPath, ETUDE_TLS_KEY_PATH: keyPath, ETUDE_TLS_CLIENT_CA_PATH: caPath } = config;
  if (certPath === undefined && keyPath === undefined && caPath === undefined) return null;
  if (certPath === undefined || keyPath === undefined)
    throw new EtudeError('FAILED_PRECONDITION', 'TLS needs ETUDE_TLS_CERT_PATH and ETUDE_TLS_KEY_PATH. Set both.');
  const pem = watchedFile(certPath, () => readPem(certPath, keyPath, caPath), report);
  return new Certificates(pem, caPath !== undefined, everyMs);
}

/** How this process calls sandbox controllers; undefined: without TLS. A process that has a certificate presents it. */
export function controllerTls(config: TlsConfig): { readonly credentials: ChannelCredentials; readonly name: string } | undefined {
  const { ETUDE_TLS_CA_PATH: ca, ETUDE_TLS_CERT_PATH: cert, ETUDE_TLS_KEY_PATH: key } = config;
  if (ca === undefined) return undefined;
  const [root, own, chain] = [ca, key, cert].map((path) => (path === undefined ? null : readFileSync(path)));
  return { credentials: credentials.createSsl(root, own, chain), name: CONTROLLER_NAME };
}

function readPem(certPath: string, keyPath: string, caPath: string | undefined): Pem {
  try {
    const [cert, key] = [readFileSync(certPath), readFileSync(keyPath)];
    const pem = { cert, key, ...(caPath === undefined ? {} : { ca: readFileSync(caPath) }) };
    // Throws if the key doesn't belong to the certificate.
    createSecureContext(pem);
    return pem;
  } catch (error) {
    const files = [certPath, keyPath, caPath].filter(Boolean).join(', ');
    throw new EtudeError('FAILED_PRECONDITION', `The TLS files ${files} can't be used: ${(error as Error).message}.`);
  }
}

type CaListener = Parameters<experimental.CertificateProvider['addCaCertificateListener']>[0];
type IdentityListener = Parameters<experimental.CertificateProvider['addIdentityCertificateListener']>[0];

class Certificates implements experimental.CertificateProvider {
  /** Each function passes the current files to a gRPC listener or an HTTP server, which lasts as long as the process. */
  readonly #tells: Array<() => void> = [];
  readonly #timer: NodeJS.Timeout;
  readonly grpc: ServerCredentials;
  #current: Pem;

  constructor(
    private readonly pem: () => Pem,
    private readonly isMutual: boolean,
    everyMs: number,
  ) {
    this.#current = pem();
    // grpc-js 1.14 takes its own certificate first and the authorities second, although its parameter names say the opposite.
    this.grpc = experimental.createCertificateProviderServerCredentials(this, isMutual ? this : null, isMutual);
    this.#timer = setInterval(() => this.#look(), everyMs).unref();
  }

  httpServer(answer: RequestListener): Server {
    const asks = { requestCert: this.isMutual, rejectUnauthorized: this.isMutual };
    const server = createHttpsServer({ ...this.#current, ...asks }, answer);
    this.#tells.push(() => server.setSecureContext(this.#current));
    return server;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const next = this.pem();
    if (next === this.#current) return;
    this.#current = next;
    for (const tell of this.#tells) tell();
  }

  #add(tell: () => void): void {
    this.#tells.push(tell);
    process.nextTick(tell);
  }

  addCaCertificateListener(listener: CaListener): void {
    this.#add(() => listener(this.#current.ca ? { caCertificate: this.#current.ca } : null));
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#add(() => listener({ certificate: this.#current.cert, privateKey: this.#current.key }));
  }

  removeCaCertificateListener(): void {}

  removeIdentityCertificateListener(): void {}
}

export const httpServer = (tls: ServerTls | null, answer: RequestListener): Server =>
  tls === null ? createHttpServer(answer) : tls.httpServer(answer);
