import { type ChannelOptions, Client, connectivityState } from '@grpc/grpc-js';

/**
 * A channel with a timeout for connecting. Calls that wait for the connection then fail with UNAVAILABLE, and the next call connects anew.
 * grpc-js has no such timeout, and the kernel's is over two minutes: https://github.com/grpc/grpc-node/issues/2785
 */
export class Connection {
  client: Client;

  /** @param connectMaxMs timeout for connecting, in ms */
  constructor(
    private readonly open: (more: ChannelOptions) => Client,
    private readonly connectMaxMs: number,
  ) {
    this.client = open({});
    this.#watch();
  }

  #watch(): void {
    const channel = this.client.getChannel();
    const state = channel.getConnectivityState(false);
    if (state === connectivityState.SHUTDOWN) return;
    const until = state === connectivityState.CONNECTING ? Date.now() + this.connectMaxMs : Infinity;
    channel.watchConnectivityState(state, until, (late) => {
      if (late) {
        const stuck = this.client;
        this.client = this.open({ 'grpc.use_local_subchannel_pool': 1 }); // the shared pool would return the stuck attempt again
        stuck.close();
      }
      this.#watch();
    });
  }
}
