import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ChannelLink, FrameChannel, type SupervisorFrame } from '../frames.js';
import type { SandboxLink } from '../sandbox-driver.js';
import { type PodPlace, supervisorNameOf, tokenOf } from './pod-identity.js';
import type { PoolDeps, PoolSettings } from './pool-settings.js';

/** The address of a supervisor, and its expected name, since the address may belong to another pod by now. */
interface PodAddress {
  readonly ip: string;
  readonly port: number;
  readonly supervisor: string;
}

type LinkTimes = Pick<PoolSettings, 'connectTimeoutMs' | 'helloTimeoutMs'>;

/** `claimed`: another claim was first. `refused`: refused for another final reason, such as a wrong token. `silent`: no answer in time. */
export type BindOutcome = { readonly outcome: 'bound' } | { readonly outcome: 'claimed' | 'refused' | 'silent'; readonly reason: string };

/** Time for process 1 to end after a `close`. */
const END_TIMEOUT_MS = 2_000;

/** A TCP connection to the supervisor of one pod, `gone` when it has ended. The pod outlives its connection until its lease ends. */
export class PodLink extends ChannelLink implements SandboxLink {
  protected readonly channel: FrameChannel;
  ending = false;
  /** Whether the claim was bound again on a newer connection, by this process or another. */
  superseded = false;
  /** Pings without an answer. */
  private pings = 0;
  private problem = '';

  private constructor(private readonly socket: Socket) {
    super();
    this.channel = new FrameChannel(socket, socket, (error) => {
      this.problem = `the sandbox sent a malformed frame: ${error.message}`;
      socket.destroy();
    });
    socket.once('close', () => this.end());
    // A supervisor always closes both directions of a connection.
    socket.once('end', () => socket.destroy());
  }

  /** Connects and checks the supervisor's name. @throws Error with the reason; the connection is closed */
  static async open(address: PodAddress, times: LinkTimes, signal?: AbortSignal): Promise<PodLink> {
    const socket = await connectTo(address, times.connectTimeoutMs, signal);
    const link = new PodLink(socket);
    const timer = setTimeout(() => socket.destroy(), times.helloTimeoutMs);
    try {
      const hello = await link.receive();
      if (hello?.type !== 'hello') throw new Error(link.complaint() || 'the supervisor sent no hello');
      if (hello.sandbox !== address.supervisor)
        throw new Error(`${address.ip} now belongs to ${String(hello.sandbox)}, not to ${address.supervisor}`);
      return link;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  override get alive(): boolean {
    return super.alive && !this.ending;
  }

  override send(frame: SupervisorFrame): void {
    if (!this.over && this.socket.writable) super.send(frame);
  }

  override async receive(): Promise<SupervisorFrame | null> {
    for (;;) {
      const frame = await super.receive();
      if (frame?.type !== 'refused') return frame;
      if (frame.code === 'superseded') {
        this.superseded = true;
        return null;
      }
      if (frame.code !== 'unknown' || this.pings === 0) return frame;
      this.pings = 0;
    }
  }

  /** Sends a ping, since a network that drops all packets doesn't end a connection. @returns whether the former ping was answered */
  ping(): boolean {
    const answered = this.pings === 0;
    this.pings += 1;
    // The supervisor does not know the type `ping`, so it answers with `refused`.
    this.send({ type: 'ping' });
    return answered;
  }

  complaint(): string {
    return this.problem;
  }

  /** Claims the pod. Only the first claim succeeds. The same claim may be bound again, on any connection. */
  async bind(claim: string, token: string, leaseMs: number, timeoutMs: number): Promise<BindOutcome> {
    this.send({ type: 'bind', claim, token, leaseMs });
    const timer = setTimeout(() => this.abandon(), timeoutMs);
    const frame = await this.receive().finally(() => clearTimeout(timer));
    if (frame?.type === 'bound' && frame.claim === claim) return { outcome: 'bound' };
    if (frame?.type === 'refused')
      return { outcome: frame.code === 'claimed' ? 'claimed' : 'refused', reason: String(frame.reason ?? frame.code) };
    return { outcome: 'silent', reason: frame ? `it answered "${frame.type}"` : this.complaint() || 'it did not answer' };
  }

  /** Resolves when process 1 has ended, or has not responded in time. */
  destroy(): Promise<void> {
    if (!this.ending && !this.over) {
      this.send({ type: 'close' });
      const timer = setTimeout(() => this.abandon(), END_TIMEOUT_MS);
      void this.gone.then(() => clearTimeout(timer));
    }
    this.ending = true;
    return this.gone;
  }

  /** Ends the connection, but not the pod. */
  abandon(): void {
    this.socket.destroy();
  }
}

/** The members of a link that tests simulate. */
export type PodConnection = Pick<PodLink, keyof PodLink>;

async function connectTo({ ip, port }: PodAddress, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  signal?.throwIfAborted();
  const socket = connect({ host: ip, port, noDelay: true });
  // A stale address in the machine's neighbour table (ARP) delays a connection by seconds. A new attempt is faster.
  const late = AbortSignal.timeout(timeoutMs);
  try {
    await once(socket, 'connect', { signal: AbortSignal.any(signal ? [signal, late] : [late]) });
    return socket;
  } catch (error) {
    socket.on('error', () => undefined).destroy();
    signal?.throwIfAborted();
    throw late.aborted ? new Error(`no connection to ${ip}:${port} within ${timeoutMs} ms`) : error;
  }
}

export type OpenLink = (address: PodAddress, times: LinkTimes, signal?: AbortSignal) => Promise<PodConnection>;

/** Connects to a claimed pod. @throws Error if the pod can't be reached or refuses the claim (then `refused` is true) */
export async function bindAgain(place: PodPlace, { open, settings, tokenSecret }: PoolDeps, signal: AbortSignal): Promise<PodConnection> {
  const { ip, pod: name, uid, nonce } = place;
  const link = await open({ ip, port: settings.port, supervisor: supervisorNameOf({ name, uid }) }, settings, signal);
  const bound = await link.bind(place.claim, tokenOf(tokenSecret, nonce), settings.leaseMs, settings.bindTimeoutMs);
  if (bound.outcome === 'bound') return link;
  link.abandon();
  throw Object.assign(new Error(bound.reason), { refused: bound.outcome !== 'silent' });
}
