import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { FrameChannel, type SupervisorFrame } from '../frames.js';
import type { SandboxLink } from '../sandbox-driver.js';
import { type PodPlace, supervisorNameOf } from './pod-identity.js';
import type { RosterPod } from './pod-roster.js';

/** Where a supervisor listens, and what it must say its name is. */
export interface PodAddress {
  readonly ip: string;
  readonly port: number;
  readonly supervisor: string;
}

/** The address that a place names; the supervisor's name tells whether another pod has it by now. */
export function addressOf({ ip, pod, uid }: Pick<PodPlace, 'ip' | 'pod' | 'uid'>, port: number): PodAddress {
  return { ip, port, supervisor: supervisorNameOf({ name: pod, uid }) };
}

export interface LinkTimes {
  readonly connectTimeoutMs: number;
  /** From the connection to the supervisor's first frame. */
  readonly helloTimeoutMs: number;
}

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
const HELLO_BYTES_MAX = 64 * 1024;

/** Over TCP. */
export class PodLink implements PodConnection {
  /** Resolves when the connection is over; after `destroy` that is when process 1 has ended, as far as can be seen from here. */
  readonly gone: Promise<void>;
  private readonly channel: FrameChannel;
  private over = false;
  private doomed = false;
  private taken = false;
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
  static async open(address: PodAddress, times: LinkTimes, signal: AbortSignal): Promise<PodLink> {
    const socket = await connectTo(address, times.connectTimeoutMs, signal);
    const link = new PodLink(socket);
    const give = () => socket.destroy();
    const timer = setTimeout(give, times.helloTimeoutMs);
    signal.addEventListener('abort', give, { once: true });
    try {
      const hello = await link.receive();
      if (hello?.type !== 'hello') throw new Error(link.complaint() || 'the supervisor did not say hello');
      if (hello.sandbox !== address.supervisor)
        throw new Error(`${address.ip} is ${String(hello.sandbox)} and not ${address.supervisor} any more`);
      if (socket.bytesRead > HELLO_BYTES_MAX) throw new Error('the supervisor says too much before it was asked');
      return link;
    } catch (error) {
      socket.destroy();
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', give);
    }
  }

  get alive(): boolean {
    return !this.over && !this.doomed;
  }

  send(frame: SupervisorFrame): void {
    if (!this.over && this.socket.writable) this.channel.send(frame);
  }

  async receive(): Promise<SupervisorFrame | null> {
    for (;;) {
      const frame = await this.channel.receive();
      if (frame?.type !== 'refused') return frame;
      if (frame.code === 'superseded') {
        this.taken = true;
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

  get superseded(): boolean {
    return this.taken;
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

  get ending(): boolean {
    return this.doomed;
  }

  destroy(): Promise<void> {
    if (!this.doomed && !this.over) {
      this.send({ type: 'close' });
      const timer = setTimeout(() => this.abandon(), END_TIMEOUT_MS);
      void this.gone.then(() => clearTimeout(timer));
    }
    this.doomed = true;
    return this.gone;
  }

  abandon(): void {
    this.socket.destroy();
  }
}

async function connectTo({ ip, port }: PodAddress, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ host: ip, port, noDelay: true });
  // A stale neighbour entry delays a connection by seconds. Another attempt is faster.
  const late = AbortSignal.timeout(timeoutMs);
  try {
    await once(socket, 'connect', { signal: AbortSignal.any([signal, late]) });
    return socket;
  } catch (error) {
    socket.on('error', () => undefined).destroy();
    signal.throwIfAborted();
    throw late.aborted ? new Error(`no connection to ${ip}:${port} within ${timeoutMs} ms`) : error;
  }
}

export type OpenLink = (address: PodAddress, times: LinkTimes, signal: AbortSignal) => Promise<PodConnection>;

/** A new connection to a claimed pod. @throws Error where the pod can't be reached, or doesn't know the claim (`refused` is true then) */
export async function bindAgain(
  place: PodPlace,
  token: string,
  open: OpenLink,
  settings: LinkTimes & { readonly port: number; readonly leaseMs: number; readonly bindTimeoutMs: number },
  signal: AbortSignal,
): Promise<PodConnection> {
  const link = await open(addressOf(place, settings.port), settings, signal);
  const bound = await link.bind(place.claim, token, settings.leaseMs, settings.bindTimeoutMs);
  if (bound.outcome === 'bound') return link;
  link.abandon();
  throw Object.assign(new Error(bound.reason), { refused: bound.outcome !== 'silent' });
}

const FIRST_WAIT_MS = 20;
const WAIT_MAX_MS = 1_000;

/** Keeps trying to connect to pods that are starting, until each is connected, has left, or is no longer starting. */
export class PodConnector {
  private readonly trying = new Map<RosterPod, AbortController>();

  constructor(
    private readonly open: OpenLink,
    private readonly times: LinkTimes & { readonly port: number },
    private readonly connected: (pod: RosterPod, link: PodConnection) => void,
  ) {}

  /** Call it whenever something about the pod changed. */
  look(pod: RosterPod): void {
    const wanted = pod.state === 'starting' && pod.uid !== null && Boolean(pod.view?.ip);
    const stop = this.trying.get(pod);
    if (!wanted) stop?.abort();
    else if (!stop) void this.connect(pod);
  }

  close(): void {
    for (const stop of this.trying.values()) stop.abort();
  }

  private async connect(pod: RosterPod): Promise<void> {
    const stop = new AbortController();
    this.trying.set(pod, stop);
    try {
      for (let waitMs = FIRST_WAIT_MS; pod.state === 'starting' && !stop.signal.aborted; waitMs = Math.min(WAIT_MAX_MS, waitMs * 1.5)) {
        const link = await this.attempt(pod, stop.signal);
        if (link) return this.hand(pod, link, stop);
        await sleep(waitMs, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    } finally {
      if (this.trying.get(pod) === stop) this.trying.delete(pod);
    }
  }

  /** null: not yet. Why does not matter while the pod starts; what is wrong with it is told by its status. */
  private async attempt(pod: RosterPod, signal: AbortSignal): Promise<PodConnection | null> {
    const { ip } = pod.view ?? {};
    if (!ip || pod.uid === null) return null;
    return this.open(addressOf({ ip, pod: pod.name, uid: pod.uid }, this.times.port), this.times, signal).catch(() => null);
  }

  private hand(pod: RosterPod, link: PodConnection, stop: AbortController): void {
    if (stop.signal.aborted || pod.state !== 'starting') return link.abandon();
    this.trying.delete(pod);
    this.connected(pod, link);
  }
}
