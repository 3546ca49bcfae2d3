import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient, status } from '@etude/contracts/grpc-client';
import { decodeStatus, isServiceError } from '@etude/contracts/rich-status';

export type ControllerClient = ServiceClient<typeof Sandboxes>;

/** A stopped or disconnected controller is noticed after both times together. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 3_000, 'grpc.keepalive_timeout_ms': 3_000 };
/** Delays before an unreachable address is tried again. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 };

/** One channel per sandbox controller, shared by all calls. The channel of a stopped controller stays idle. */
export class ControllerChannels {
  readonly #clients = new Map<string, ControllerClient>();

  /** @param token the shared secret of controllers and their callers */
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

/** Codes for statuses without details, from a controller or from the connection to it. */
const PLAIN: Readonly<Record<number, ErrorCode>> = {
  [status.DEADLINE_EXCEEDED]: 'DEADLINE_EXCEEDED',
  [status.RESOURCE_EXHAUSTED]: 'PAYLOAD_TOO_LARGE',
};

/** gRPC statuses of a refused or broken connection. CANCELLED means that the other side cut it. */
const BROKEN: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.CANCELLED]);

/**
 * Whether the controller is unreachable, shutting down, or no longer the owner. The session's next owner may then answer the same call.
 * Check first that the caller hasn't cancelled.
 */
export function isAway(error: unknown): boolean {
  if (!isServiceError(error)) return false;
  const details = decodeStatus(error.metadata);
  // The error names the controller that owns the session now.
  if (details) return details.code === 'SHUTTING_DOWN' || details.metadata?.['controller'] !== undefined;
  return BROKEN.has(error.code) || (error.code === status.INTERNAL && error.details.includes('RST_STREAM'));
}

/** Converts a controller's error for the caller, with its code, fields and retry time. An error without a code is returned unchanged. */
export function forwardedError(error: unknown): unknown {
  if (!isServiceError(error)) return error;
  const said = decodeStatus(error.metadata);
  if (said?.code === 'UNAUTHENTICATED' || said?.code === 'PERMISSION_DENIED' || (!said && error.code === status.UNAUTHENTICATED)) {
    return new EtudeError(
      'SANDBOX_UNAVAILABLE',
      'The sandbox controller refused this service. The operator must set the same ETUDE_SANDBOX_INTERNAL_TOKEN for gateways, rollout workers and sandbox controllers.',
    );
  }
  if (said) {
    const { code, ...details } = said;
    return new EtudeError(code, error.details, details, { cause: error });
  }
  const code = isAway(error) ? 'SANDBOX_UNAVAILABLE' : PLAIN[error.code];
  if (!code) return error;
  const message = code === 'SANDBOX_UNAVAILABLE' ? `The sandbox controller is unreachable (${error.details}). Try again.` : error.details;
  return new EtudeError(code, message, {}, { cause: error });
}
