import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';

export type ControllerClient = ServiceClient<typeof Sandboxes>;

/** A controller that is stopped or cut off is noticed within both together. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 3_000, 'grpc.keepalive_timeout_ms': 3_000 };
/** How soon an address is tried again that was not reached. */
const RECONNECT = { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 };

/** One channel to each sandbox controller, however many calls go over it. */
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

  /** Drops the channels to controllers that are gone. */
  keepOnly(addresses: ReadonlySet<string>): void {
    for (const [address, client] of this.#clients) {
      if (addresses.has(address)) continue;
      client.close();
      this.#clients.delete(address);
    }
  }

  close(): void {
    this.keepOnly(new Set());
  }
}
