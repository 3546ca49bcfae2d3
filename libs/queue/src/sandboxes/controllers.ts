import { z } from 'zod';
import { parseStored } from '../jobs/job-end.js';
import { pairsOf, RedisStore, unlessDamaged } from '../redis/redis.js';
import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type ChannelCredentials, createServiceClient, type ServiceClient, status } from '@etude/contracts/grpc-client';
import { decodeStatus, isServiceError } from '@etude/contracts/rich-status';

/** A controller without a heartbeat for this long counts as dead. */
const CONTROLLER_TTL_MS = 5_000;
export const CONTROLLER_HEARTBEAT_MS = 1_000;

export const ControllerAnnouncement = z.object({
  controllerId: z.string().min(1),
  /** "host:port" of its gRPC server. */
  address: z.string().min(1),
  sessions: z.number().int(),
  sessionsMax: z.number().int(),
  /** Sandboxes that are ready for a claim, and claims that wait for a sandbox. Earlier versions don't send these. */
  warm: z.number().int().default(0),
  claimsWaiting: z.number().int().default(0),
});
export type ControllerAnnouncement = z.infer<typeof ControllerAnnouncement>;

/** The live sandbox controllers and their addresses. Uses Redis's clock. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class ControllerDirectory extends RedisStore {
  /** Sends a heartbeat. Call it every `CONTROLLER_HEARTBEAT_MS`. */
  async announce(controller: z.input<typeof ControllerAnnouncement>): Promise<void> {
    await this.run('announceController', this.#both, [controller.controllerId, JSON.stringify(controller)]);
  }

  /** Announces a shutdown: from now on the controller counts as dead. */
  async withdraw(controllerId: string): Promise<void> {
    await this.ask(this.redis.zadd(this.keys.controllersSeen, 'XX', 0, controllerId));
  }

  async live(): Promise<readonly ControllerAnnouncement[]> {
    const found = await this.run<Array<string | null>>('liveControllers', this.#both, [CONTROLLER_TTL_MS]);
    const read = async (text: string) => parseStored(ControllerAnnouncement, JSON.parse(text), 'INTERNAL', 'the announcement');
    const texts = found.filter((text) => text !== null);
    const all = await Promise.all(texts.map((text) => unlessDamaged(this.redis, 'a sandbox controller', () => read(text))));
    return all.filter((one) => one !== undefined);
  }

  /** Dead controllers. Another controller must take over their sessions. `left`: it announced its shutdown, so it certainly isn't alive. */
  async dead(): Promise<ReadonlyArray<{ readonly controllerId: string; readonly left: boolean }>> {
    const flat = await this.run<string[]>('deadControllers', this.#both, [CONTROLLER_TTL_MS]);
    return pairsOf(flat).map(([controllerId, seenAt]) => ({ controllerId, left: Number(seenAt) === 0 }));
  }

  /** Removes a dead controller that holds no sessions any more. */
  async forget(controllerId: string): Promise<void> {
    const places = [...this.#both, this.keys.heldSandboxes(controllerId)];
    await this.run('forgetController', places, [controllerId, CONTROLLER_TTL_MS]);
  }

  get #both(): [string, string] {
    return [this.keys.controllers, this.keys.controllersSeen];
  }
}

export type ControllerClient = ServiceClient<typeof Sandboxes>;

/** A controller that no longer answers is noticed after the sum of both times. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 3_000, 'grpc.keepalive_timeout_ms': 3_000 };
/** Delays before an unreachable address is tried again. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 };

/** One channel per sandbox controller, shared by all calls. The channel of a stopped controller stays idle. */
export class ControllerChannels {
  readonly #clients = new Map<string, ControllerClient>();

  /**
   * @param token the shared secret of controllers and their callers
   * @param tls how controllers are called over TLS, and the name in their certificates; absent: without TLS
   */
  constructor(
    private readonly token: string,
    private readonly tls?: { readonly credentials: ChannelCredentials; readonly name: string },
  ) {}

  /** @param address "host:port" */
  to(address: string): ControllerClient {
    const known = this.#clients.get(address);
    if (known) return known;
    const { credentials, name } = this.tls ?? {};
    const named = name === undefined ? {} : { 'grpc.ssl_target_name_override': name, 'grpc.default_authority': name };
    const channel = { ...KEEPALIVE, ...RECONNECT, ...named };
    const client = createServiceClient(Sandboxes, address, { apiKey: this.token, channel, ...(credentials ? { credentials } : {}) });
    this.#clients.set(address, client);
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
    this.#clients.clear();
  }
}

/** Error codes for gRPC statuses without details, from a controller or from the connection to it. */
const PLAIN: Readonly<Record<number, ErrorCode>> = {
  [status.DEADLINE_EXCEEDED]: 'DEADLINE_EXCEEDED',
  [status.RESOURCE_EXHAUSTED]: 'PAYLOAD_TOO_LARGE',
};

/** gRPC statuses of a refused or broken connection. CANCELLED means that the other side closed it. */
const BROKEN: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.CANCELLED]);

/**
 * Whether the controller is unreachable, shutting down, or no longer the session's owner. The next owner may then answer the same call.
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
    const message =
      'The sandbox controller refused this service. The operator must set the same ETUDE_SANDBOX_INTERNAL_TOKEN for gateways, rollout workers and sandbox controllers.';
    return new EtudeError('SANDBOX_UNAVAILABLE', message);
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
