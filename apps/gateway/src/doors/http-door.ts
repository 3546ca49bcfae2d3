import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ERROR_KINDS, type ErrorCode, errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import { listenOn } from '@etude/platform/health';
import { httpServer, type ServerTls } from '@etude/platform/tls';
import { status as grpc } from '@grpc/grpc-js';
import type { Authenticator } from '../calls/caller.js';

/** How long the rest of a refused body is read and dropped, so that the sender can read the refusal. */
const REFUSED_BODY_MS = 5_000;
const REQUEST_TIMEOUT_MS = 600_000;
const CLOSE_GRACE_MS = 3_000;
const RETRY_AFTER_MS = 1_000;

interface HttpDoorParts {
  /** The setting of the port, for error messages. */
  readonly setting: string;
  readonly tls: ServerTls | null;
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Sends an error. Called only if nothing was sent yet. */
  readonly fail: (response: ServerResponse, error: RestError, cause: unknown) => void;
  /** Ends streams that never end by themselves, after the grace period for other requests. */
  readonly cut?: () => Promise<void>;
}

export function httpDoor({ setting, tls, answer, fail, cut }: HttpDoorParts) {
  const server = httpServer(tls, (request, response) => {
    response.once('finish', () => dropRest(request));
    answer(request, response).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) {
        response.destroy();
        return;
      }
      const told = restError(error);
      if (told.retryAfterMs !== undefined) response.setHeader('retry-after', String(Math.ceil(told.retryAfterMs / 1_000)));
      if (told.status === 401) response.setHeader('www-authenticate', 'Bearer');
      fail(response, told, error);
    });
  });
  server.headersTimeout = 10_000;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = 2_048;
  return {
    /** @throws EtudeError FAILED_PRECONDITION if the port is taken */
    listen: (host: string, port: number) => listenOn(server, { host, port, setting }),
    async close(): Promise<void> {
      if (!server.listening) return;
      server.close();
      server.closeIdleConnections();
      await Promise.race([once(server, 'close'), new Promise((resolve) => setTimeout(resolve, CLOSE_GRACE_MS).unref())]);
      await cut?.();
      server.closeAllConnections();
    },
  };
}

function dropRest(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return;
  const timer = setTimeout(() => request.destroy(), REFUSED_BODY_MS);
  request.once('close', () => clearTimeout(timer));
  request.resume();
}

/** Checks the key of a request before its body is read, and returns the key with its user. The call checks it again, with its role. */
export async function keyOf(
  { headers }: IncomingMessage,
  authenticator: Pick<Authenticator, 'identify'>,
): Promise<{ readonly authorization: string; readonly user: string | undefined }> {
  const { authorization } = headers;
  if (!authorization) throw new EtudeError('UNAUTHENTICATED', 'Send an API key in the header "authorization: Bearer <key>".');
  const { user } = await authenticator.identify([authorization]);
  return { authorization, user };
}

export const mediaTypeOf = ({ headers }: IncomingMessage) => (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();

/** HTTP statuses by gRPC status, as in Google's APIs. */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [grpc.CANCELLED]: 499,
  [grpc.INVALID_ARGUMENT]: 400,
  [grpc.DEADLINE_EXCEEDED]: 504,
  [grpc.NOT_FOUND]: 404,
  [grpc.ALREADY_EXISTS]: 409,
  [grpc.PERMISSION_DENIED]: 403,
  [grpc.UNAUTHENTICATED]: 401,
  [grpc.RESOURCE_EXHAUSTED]: 429,
  [grpc.FAILED_PRECONDITION]: 400,
  [grpc.ABORTED]: 409,
  [grpc.UNAVAILABLE]: 503,
};

interface RestError {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** The shape is documented in `docs/errors.md`. */
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly fields?: ReadonlyArray<{ field: string; description: string }>;
  };
}

function restError(error: unknown): RestError {
  const code = errorCode(error);
  const message =
    code === 'INTERNAL' && !(error instanceof EtudeError) ? 'The gateway failed. Tell the operator the time.' : (error as Error).message;
  const { field, violations, retryAfterMs = ERROR_KINDS[code].retryable ? RETRY_AFTER_MS : undefined } = errorDetails(error);
  const fields = violations ?? (field === undefined ? undefined : [{ field, description: message }]);
  const status = code === 'PAYLOAD_TOO_LARGE' ? 413 : (HTTP_STATUS[ERROR_KINDS[code].grpc] ?? 500);
  return { status, retryAfterMs, error: { code, message, ...(fields ? { fields } : {}) } };
}

/** The parts of a body, read no faster than they are consumed. @throws EtudeError PAYLOAD_TOO_LARGE, at once if the announced size is too large */
export async function* chunksOf(request: IncomingMessage, bytesMax: number): AsyncGenerator<Buffer> {
  const tooLarge = () => new EtudeError('PAYLOAD_TOO_LARGE', `The body of this call may have at most ${bytesMax} bytes. Send less.`);
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge();
  let size = 0;
  // The request stays open, so that its sender can read a refusal.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > bytesMax) throw tooLarge();
    yield chunk;
  }
}

/** @throws EtudeError PAYLOAD_TOO_LARGE; INVALID_ARGUMENT if the body isn't UTF-8 */
export async function textOf(request: IncomingMessage, bytesMax: number): Promise<string> {
  const body = Buffer.concat(await Array.fromAsync(chunksOf(request, bytesMax)));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw new EtudeError('INVALID_ARGUMENT', 'The body must be UTF-8 text.');
  }
}
