import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, EtudeError, unlessAborted } from '@etude/contracts/errors';
import type { ExecuteEvent, ExecuteRequest } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { CallSettings } from '@etude/contracts/grpc-client';
import type { SandboxSession } from '@etude/contracts/sandbox';
import { endedError, noSandboxError } from '@etude/contracts/sandbox-wire';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import {
  type ControllerAnnouncement,
  type ControllerChannels,
  type ControllerClient,
  type ControllerDirectory,
  forwardedError,
  isAway,
} from './controllers.js';
import type { SandboxSessionStore, StoredSession } from './sandbox-sessions.js';

/** How long to retry while a session's owner is unreachable. Longer than the time after which an owner counts as dead. */
const AWAY_MAX_MS = 12_000;
const RETRY_MS = 200;

export interface RoutedCall {
  readonly tenant: string;
  readonly signal: AbortSignal;
  /** ms since 1970; Infinity without a deadline. */
  readonly deadlineMs: number;
}

export interface RouterParts {
  readonly sessions: Pick<SandboxSessionStore, 'get'>;
  readonly directory: Pick<ControllerDirectory, 'live'>;
  /** null: sandboxes for callers are off. */
  readonly channels: ControllerChannels | null;
  /** Whether a session is hidden from callers of this router. Absent: no session is hidden. */
  readonly hides?: (session: SandboxSession) => boolean;
  /** Absent: controllers get no trace. */
  readonly tracing?: Tracing;
}

export function forwardSettings({ tenant, signal, deadlineMs }: RoutedCall, { current: traceparent }: Tracing = UNTRACED): CallSettings {
  const timeout = Number.isFinite(deadlineMs) ? { timeoutMs: Math.max(1, deadlineMs - Date.now()) } : {};
  return { signal, metadata: { 'etude-tenant': tenant, ...(traceparent === undefined ? {} : { traceparent }) }, ...timeout };
}

const SWITCHED_OFF =
  'Sandboxes for callers are off. The operator must set ETUDE_SANDBOX_INTERNAL_TOKEN to the same secret for the gateway, every rollout worker and every sandbox controller ("etude up" does).';

/** Whether another controller may accept the sandbox. If the tenant's quota is used up, no controller does. */
const mayHaveRoomElsewhere = (error: EtudeError) =>
  ['SANDBOX_UNAVAILABLE', 'SANDBOX_CAPACITY', 'SHUTTING_DOWN'].includes(error.code) && !error.details.metadata?.['openMax'];

const noneLives = () =>
  new EtudeError(
    'SANDBOX_UNAVAILABLE',
    'No live sandbox controller accepts sandboxes of callers. Try again. If the error stays, the operator must start a controller with ETUDE_SANDBOX_INTERNAL_TOKEN.',
    { retryAfterMs: 1_000 },
  );

/** Finds the controller for a call. Any live controller can take over sessions of a dead controller. */
export class SandboxRouter {
  constructor(private readonly parts: RouterParts) {}

  /** Why sandboxes for callers are off, and how to switch them on; null if they are on. */
  get whyOff(): string | null {
    return this.parts.channels ? null : SWITCHED_OFF;
  }

  /** @throws EtudeError FAILED_PRECONDITION if sandboxes for callers are off; the message says how to switch them on */
  requireOn(): ControllerChannels {
    if (this.parts.channels) return this.parts.channels;
    throw new EtudeError('FAILED_PRECONDITION', SWITCHED_OFF);
  }

  /** @throws EtudeError NOT_FOUND, FAILED_PRECONDITION */
  async session(tenant: string, id: string): Promise<StoredSession> {
    this.requireOn();
    const stored = await this.parts.sessions.get(tenant, id);
    if (stored && !this.parts.hides?.(stored.session)) return stored;
    throw noSandboxError(id);
  }

  /**
   * Calls the owner of a session. If the owner is unreachable, retries the owner or the controller that takes the session over.
   *
   * @param work must be safe to repeat
   * @throws EtudeError the controller's error; NOT_FOUND, SANDBOX_UNAVAILABLE
   */
  async ask<T>(id: string, context: RoutedCall, work: (client: ControllerClient, settings: CallSettings) => Promise<T>): Promise<T> {
    const answers = this.follow(id, context, async function* once(client, settings) {
      yield await work(client, settings);
    });
    return (await Array.fromAsync(answers))[0] as T;
  }

  /** Like `ask`, for a stream of answers. @param open called again if the stream breaks, to continue after the last answer */
  async *follow<T>(
    id: string,
    context: RoutedCall,
    open: (client: ControllerClient, settings: CallSettings) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    let hasWaited = false;
    let awaySince: number | null = null;
    for (;;) {
      try {
        const client = await this.owner(context.tenant, id);
        for await (const answer of open(client, forwardSettings(context, this.parts.tracing))) {
          awaySince = null;
          yield answer;
        }
        return;
      } catch (error) {
        context.signal.throwIfAborted();
        awaySince ??= performance.now();
        const mayHelp = isAway(error) || (hasWaited && errorCode(error) === 'SANDBOX_UNAVAILABLE');
        if (!mayHelp || performance.now() - awaySince > AWAY_MAX_MS) throw forwardedError(error);
        hasWaited = true;
        await unlessAborted(sleep(RETRY_MS), context.signal);
      }
    }
  }

  /**
   * Follows one execution to its result. If its controller is lost, the next owner continues after the last event, without missing or
   * repeating an event.
   *
   * @throws EtudeError the controller's error; FAILED_PRECONDITION with the reason if the sandbox was lost
   */
  async *execute(id: string, first: ExecuteRequest, context: RoutedCall): AsyncGenerator<ExecuteEvent> {
    let request = first;
    for await (const event of this.follow(id, context, (client, settings) => client.execute(request, settings))) {
      request = { ...request, resumeToken: event.resumeToken };
      yield event;
      if (event.event.case === 'result') return;
    }
  }

  /** The session's owner, or a live controller that takes over. @throws EtudeError NOT_FOUND, SANDBOX_UNAVAILABLE, FAILED_PRECONDITION */
  async owner(tenant: string, id: string): Promise<ControllerClient> {
    const channels = this.requireOn();
    const [stored, live] = await Promise.all([this.session(tenant, id), this.parts.directory.live()]);
    const chosen = live.find((one) => one.controllerId === stored.controllerId) ?? leastLoaded(live)[0];
    if (!chosen) throw stored.session.state === 'open' ? noneLives() : endedError(stored.session);
    return channels.to(chosen.address);
  }

  /** Creates a sandbox at the controller with the fewest sessions, or at the next controller with room. */
  async create<T>(context: RoutedCall, work: (client: ControllerClient, settings: CallSettings) => Promise<T>): Promise<T> {
    const channels = this.requireOn();
    let refusal: unknown = null;
    for (const { address } of leastLoaded(await this.parts.directory.live())) {
      try {
        return await work(channels.to(address), forwardSettings(context, this.parts.tracing));
      } catch (error) {
        context.signal.throwIfAborted();
        const said = forwardedError(error);
        if (!(said instanceof EtudeError) || !mayHaveRoomElsewhere(said)) throw said;
        // Reports the refusal of the least loaded controller.
        refusal ??= said;
      }
    }
    throw refusal ?? noneLives();
  }

  close(): void {
    this.parts.channels?.close();
  }
}

/** Controllers with room first, each group sorted by its number of sessions. */
const leastLoaded = (live: readonly ControllerAnnouncement[]) =>
  live.toSorted((a, b) => Number(a.sessions >= a.sessionsMax) - Number(b.sessions >= b.sessionsMax) || a.sessions - b.sessions);
