import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';

export type ControllerClient = ServiceClient<typeof Sandboxes>;

/** A controller that is stopped or cut off is noticed within both together. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 3_000, 'grpc.keepalive_timeout_ms': 3_000 };
/** How soon an address is tried again that was not reached. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 };
/**
 * A controller that is not known for this long is gone. Shorter, it may be that Redis was away, or its clock was set: calls are under
 * way, and closing the channel would cut them.
 */
const GONE_MS = 60_000;

interface Channel {
  readonly client: ControllerClient;
  /** By the monotonic clock; null while it is known. */
  missingSinceMs: number | null;
}

/** One channel to each sandbox controller, however many calls go over it. */
export class ControllerChannels {
  readonly #channels = new Map<string, Channel>();

  /** @param token of the inside, known to gateways and controllers alone */
  constructor(
    private readonly token: string,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** @param address "host:port" */
  to(address: string): ControllerClient {
    const known = this.#channels.get(address);
    if (known) return known.client;
    const client = createServiceClient(Sandboxes, address, { apiKey: this.token, channel: { ...KEEPALIVE, ...RECONNECT } });
    this.#channels.set(address, { client, missingSinceMs: null });
    return client;
  }

  /** Drops the channels to controllers that have not been among these addresses for a while. */
  keepOnly(addresses: ReadonlySet<string>): void {
    const now = this.nowMs();
    for (const [address, channel] of this.#channels) {
      channel.missingSinceMs = addresses.has(address) ? null : (channel.missingSinceMs ?? now);
      if (channel.missingSinceMs === null || now - channel.missingSinceMs < GONE_MS) continue;
      channel.client.close();
      this.#channels.delete(address);
    }
  }

  close(): void {
    for (const { client } of this.#channels.values()) client.close();
    this.#channels.clear();
  }
}
