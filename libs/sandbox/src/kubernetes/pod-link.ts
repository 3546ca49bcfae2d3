import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { FrameChannel, type SupervisorFrame } from '../frames.js';
import type { SandboxLink } from '../sandbox-driver.js';
import { type PodPlace, supervisorNameOf } from './pod-identity.js';
import type { PoolSettings } from './pool-settings.js';

/** Where a supervisor listens, and what it must say its name is: that tells whether another pod has the address by now. */
export interface PodAddress {
  readonly ip: string;
  readonly port: number;
  readonly supervisor: string;
}

export type LinkTimes = Pick<PoolSettings, 'connectTimeoutMs' | 'helloTimeoutMs'>;

/** `claimed`: another claim was first. `refused`: for good, such as a wrong token. `silent`: no answer in time, or no connection. */
export type BindOutcome = { readonly outcome: 'bound' } | { readonly outcome: 'claimed' | 'refused' | 'silent'; readonly reason: string };

/** A connection to the supervisor of one pod. Its end is no end of the pod: the lease is. */
export interface PodConnection extends SandboxLink {
  /** Whether `destroy` was called. */
  readonly ending: boolean;
  /** Whether the claim was bound on a newer connection, by this process or another. */
  readonly superseded: boolean;
  /** Compare-and-set: whoever is first owns the pod. The same claim again is bound again. */
  bind(claim: string, token: string, leaseMs: number, timeoutMs: number): Promise<BindOutcome>;
  /**
   * Asks for a sign of life.
   *
   * @returns whether the one before was answered: a network that swallows everything ends no connection by itself
   */
  ping(): boolean;
  /** Ends the connection, and not the pod. */
  abandon(): void;
}

/** After `close`, for process 1 to end. */
const END_TIMEOUT_MS = 2_000;

/** Over TCP. */
export class PodLink implements PodConnection {
  /** Resolves when the connection is over; after `destroy` that is when process 1 has ended, as far as can be seen from here. */
  readonly gone: Promise<void>;
  private readonly channel: FrameChannel;
  ending = false;
  superseded = false;
  private over = false;
  /** Not answered yet. */
  private pings = 0;
  private problem = '';

  private constructor(private readonly socket: Socket) {
    this.channel = new FrameChannel(socket, socket, (error) => {
      this.problem = `it sent a malformed frame: ${error.message}`;
      socket.destroy();
    });
    this.gone = new Promise((resolve) => {
      socket.once('close', () => {
        this.over = true;
        this.channel.end();
        resolve();
      });
    });
    // A half-closed supervisor is an ended one.
    socket.once('end', () => socket.destroy());
  }

  /**
   * Connects, and makes sure that it is the pod that was meant: addresses are given to other pods again.
   *
   * @throws Error saying what was wrong, whatever it was; nothing stays open then
   */
  static async open(address: PodAddress, times: LinkTimes, signal?: AbortSignal): Promise<PodLink> {
    const socket = await connectTo(address, times.connectTimeoutMs, signal);
    const link = new PodLink(socket);
    const timer = setTimeout(() => socket.destroy(), times.helloTimeoutMs);
    try {
      const hello = await link.receive();
      if (hello?.type !== 'hello') throw new Error(link.complaint() || 'the supervisor did not say hello');
      if (hello.sandbox !== address.supervisor)
        throw new Error(`${address.ip} is ${String(hello.sandbox)} and not ${address.supervisor} any more`);
      return link;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  get alive(): boolean {
    return !this.over && !this.ending;
  }

  send(frame: SupervisorFrame): void {
    if (!this.over && this.socket.writable) this.channel.send(frame);
  }

  async receive(): Promise<SupervisorFrame | null> {
    for (;;) {
      const frame = await this.channel.receive();
      if (frame?.type !== 'refused') return frame;
      if (frame.code === 'superseded') {
        this.superseded = true;
        return null;
      }
      if (frame.code !== 'unknown' || this.pings === 0) return frame;
      this.pings = 0;
    }
  }

  ping(): boolean {
    const answered = this.pings === 0;
    this.pings += 1;
    // A type that nobody knows is answered with `refused`, which is all that is wanted.
    this.send({ type: 'ping' });
    return answered;
  }

  complaint(): string {
    return this.problem;
  }

  async bind(claim: string, token: string, leaseMs: number, timeoutMs: number): Promise<BindOutcome> {
    this.send({ type: 'bind', claim, token, leaseMs });
    const timer = setTimeout(() => this.abandon(), timeoutMs);
    const frame = await this.receive().finally(() => clearTimeout(timer));
    if (frame?.type === 'bound' && frame.claim === claim) return { outcome: 'bound' };
    if (frame?.type === 'refused')
      return { outcome: frame.code === 'claimed' ? 'claimed' : 'refused', reason: String(frame.reason ?? frame.code) };
    return { outcome: 'silent', reason: frame ? `it answered "${frame.type}"` : this.complaint() || 'it did not answer' };
  }

  destroy(): Promise<void> {
    if (!this.ending && !this.over) {
      this.send({ type: 'close' });
      const timer = setTimeout(() => this.abandon(), END_TIMEOUT_MS);
      void this.gone.then(() => clearTimeout(timer));
    }
    this.ending = true;
    return this.gone;
  }

  abandon(): void {
    this.socket.destroy();
  }
}

async function connectTo({ ip, port }: PodAddress, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  signal?.throwIfAborted();
  const socket = connect({ host: ip, port, noDelay: true });
  // A stale neighbour entry delays a connection by seconds. Another attempt is faster.
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

/** A new connection to a claimed pod. @throws Error where the pod can't be reached, or doesn't know the claim (`refused` is true then) */
export async function bindAgain(
  place: PodPlace,
  token: string,
  open: OpenLink,
  settings: PoolSettings,
  signal: AbortSignal,
): Promise<PodConnection> {
  const { ip, pod: name, uid } = place;
  const link = await open({ ip, port: settings.port, supervisor: supervisorNameOf({ name, uid }) }, settings, signal);
  const bound = await link.bind(place.claim, token, settings.leaseMs, settings.bindTimeoutMs);
  if (bound.outcome === 'bound') return link;
  link.abandon();
  throw Object.assign(new Error(bound.reason), { refused: bound.outcome !== 'silent' });
}
