import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { decodeStatus } from '@etude/contracts/rich-status';
import { type ServiceError, status } from '@grpc/grpc-js';

export type ControllerClient = ServiceClient<typeof Sandboxes>;

/** A controller that is stopped or cut off is noticed within both together. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 3_000, 'grpc.keepalive_timeout_ms': 3_000 };
/** How soon an address is tried again that was not reached. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 };

/** One channel to each sandbox controller, however many calls go over it. That to one that is gone is idle. */
export class ControllerChannels {
  readonly #clients = new Map<string, ControllerClient>();

  /** @param token of the inside, known to gateways and controllers alone */
  constructor(private readonly token: string) {}

  /** @param address "host:port" */
  to(address: string): ControllerClient {
    const known = this.#clients.get(address);
    if (known) return known;
    const client = createServiceClient(Sandboxes, address, { apiKey: this.token, channel: { ...KEEPALIVE, ...RECONNECT } });
    this.#clients.set(address, client);
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === 'number' && 'metadata' in error;
}

/** Statuses that a controller, or the way to it, answers without saying more. */
const PLAIN: Readonly<Record<number, ErrorCode>> = {
  [status.DEADLINE_EXCEEDED]: 'DEADLINE_EXCEEDED',
  [status.RESOURCE_EXHAUSTED]: 'PAYLOAD_TOO_LARGE',
};

/** How gRPC tells of a connection that was refused or broke; CANCELLED, of one that the other side cut. */
const BROKEN: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.CANCELLED]);

/**
 * Whether nobody is there or it is about to go: the same call may be answered by the session's next owner.
 *
 * Ask first whether the caller cancelled it.
 */
export function isAway(error: unknown): boolean {
  if (!isServiceError(error)) return false;
  const details = decodeStatus(error.metadata);
  // Another one holds it by now, and says which.
  if (details) return details.code === 'SHUTTING_DOWN' || details.metadata?.['controller'] !== undefined;
  return BROKEN.has(error.code) || (error.code === status.INTERNAL && error.details.includes('RST_STREAM'));
}

/** What a controller answered, with its code, fields and retry time, for the caller. What has no code comes back as it is. */
export function forwardedError(error: unknown): unknown {
  if (!isServiceError(error)) return error;
  const said = decodeStatus(error.metadata);
  if (said?.code === 'UNAUTHENTICATED' || said?.code === 'PERMISSION_DENIED' || (!said && error.code === status.UNAUTHENTICATED)) {
    return new EtudeError(
      'SANDBOX_UNAVAILABLE',
      'The sandbox controller does not know this gateway. ETUDE_SANDBOX_INTERNAL_TOKEN must be the same for both; tell the operator.',
    );
  }
  if (said) {
    const { code, ...details } = said;
    return new EtudeError(code, error.details, details, { cause: error });
  }
  const code = isAway(error) ? 'SANDBOX_UNAVAILABLE' : PLAIN[error.code];
  if (!code) return error;
  const message = code === 'SANDBOX_UNAVAILABLE' ? `The sandbox controller is away (${error.details}); try again.` : error.details;
  return new EtudeError(code, message, {}, { cause: error });
}
