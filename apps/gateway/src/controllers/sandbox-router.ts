import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { CallSettings } from '@etude/contracts/grpc-client';
import type { ControllerAnnouncement, ControllerDirectory } from '@etude/queue/sandboxes/controller-directory';
import type { SandboxSessionStore, StoredSession } from '@etude/queue/sandboxes/sandbox-sessions';
import type { CallContext } from '../calls/caller.js';
import { unlessAborted } from '../calls/local-client.js';
import { type ControllerChannels, type ControllerClient, forwardedError, isAway } from './controller-client.js';

/** How long a session's owner may be away before a call gives up: longer than it takes to count as dead. */
const AWAY_MAX_MS = 12_000;
const RETRY_MS = 200;

export interface RouterParts {
  readonly sessions: Pick<SandboxSessionStore, 'get'>;
  readonly directory: Pick<ControllerDirectory, 'live'>;
  /** null: sandboxes for callers are not switched on. */
  readonly channels: ControllerChannels | null;
}

/** Bounds one call from its caller's: who it is for, its deadline, its end. */
export function forwardSettings({ tenant, signal, deadlineMs }: CallContext): CallSettings {
  const timeout = Number.isFinite(deadlineMs) ? { timeoutMs: Math.max(1, deadlineMs - Date.now()) } : {};
  return { signal, metadata: { 'etude-tenant': tenant }, ...timeout };
}

const SWITCHED_OFF =
  'Sandboxes for callers are not switched on here. The operator sets ETUDE_SANDBOX_INTERNAL_TOKEN to the same secret for the gateway and every sandbox controller ("etude up" does).';

/** Room of its own, whatever the tenant's. */
const mayHaveRoomElsewhere = (error: EtudeError) =>
  ['SANDBOX_UNAVAILABLE', 'SANDBOX_CAPACITY', 'SHUTTING_DOWN'].includes(error.code) && !error.details.metadata?.['openMax'];

const noneLives = () =>
  new EtudeError(
    'SANDBOX_UNAVAILABLE',
    'No sandbox controller takes sandboxes of callers right now. Try again; if it stays so, the operator looks whether one runs with ETUDE_SANDBOX_INTERNAL_TOKEN.',
    { retryAfterMs: 1_000 },
  );

/** Of a session that has ended, which its controller would have said. */
function endedError({ session: { id, state, stateReason } }: StoredSession): EtudeError {
  const how = state === 'lost' ? `was lost: ${stateReason}` : state === 'expired' ? 'expired; renew a sandbox in time' : 'was closed';
  const name = `sandboxes/${id}`;
  return new EtudeError('FAILED_PRECONDITION', `${name} ${how}. Create another one.`, {
    metadata: { name, state, ...(stateReason ? { reason: stateReason } : {}) },
  });
}

/** Finds the controller that a call is for. Any live one can take over the sessions of one that died. */
export class SandboxRouter {
  constructor(private readonly parts: RouterParts) {}

  /** Why there are no sandboxes for callers, and how they are switched on; null where there are. */
  get whyOff(): string | null {
    return this.parts.channels ? null : SWITCHED_OFF;
  }

  /** @throws EtudeError FAILED_PRECONDITION, saying how they are switched on, where sandboxes for callers are not */
  requireOn(): ControllerChannels {
    if (this.parts.channels) return this.parts.channels;
    throw new EtudeError('FAILED_PRECONDITION', SWITCHED_OFF);
  }

  /** @throws EtudeError NOT_FOUND, FAILED_PRECONDITION */
  async session(tenant: string, id: string): Promise<StoredSession> {
    this.requireOn();
    const stored = await this.parts.sessions.get(tenant, id);
    if (stored) return stored;
    const name = `sandboxes/${id}`;
    throw new EtudeError('NOT_FOUND', `There is no ${name}. It may have belonged to another key, or ended more than an hour ago.`, {
      metadata: { name },
    });
  }

  /**
   * A call to the owner of a session. One that is away is called again, or whoever takes the session over.
   *
   * @param work must do no harm when it is repeated
   * @throws EtudeError as the controller says; NOT_FOUND, SANDBOX_UNAVAILABLE
   */
  async ask<T>(id: string, context: CallContext, work: (client: ControllerClient, settings: CallSettings) => Promise<T>): Promise<T> {
    for (const patience = new Patience(context.signal); ;) {
      try {
        return await work(await this.owner(context.tenant, id, patience.tries), forwardSettings(context));
      } catch (error) {
        await patience.again(error);
      }
    }
  }

  /**
   * The same for a stream of answers.
   *
   * @param open asked again where the stream broke: for what follows the last answer
   */
  async *follow<T>(
    id: string,
    context: CallContext,
    open: (client: ControllerClient, settings: CallSettings) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    for (const patience = new Patience(context.signal); ;) {
      try {
        const client = await this.owner(context.tenant, id, patience.tries);
        for await (const answer of open(client, forwardSettings(context))) {
          patience.renew();
          yield answer;
        }
        return;
      } catch (error) {
        await patience.again(error);
      }
    }
  }

  /** @throws EtudeError NOT_FOUND, SANDBOX_UNAVAILABLE, FAILED_PRECONDITION */
  async owner(tenant: string, id: string, tries = 0): Promise<ControllerClient> {
    const channels = this.requireOn();
    const [stored, live] = await Promise.all([this.session(tenant, id), this.parts.directory.live(tries > 0 ? 0 : undefined)]);
    const chosen = live.find((one) => one.controllerId === stored.controllerId) ?? leastLoaded(live)[0];
    if (!chosen) throw stored.session.state === 'open' ? noneLives() : endedError(stored);
    return channels.to(chosen.address);
  }

  /** At the controller with the fewest sessions; at the next one where that has no room after all. */
  async create<T>(context: CallContext, work: (client: ControllerClient, settings: CallSettings) => Promise<T>): Promise<T> {
    const channels = this.requireOn();
    let refusal: unknown = null;
    for (const { address } of leastLoaded(await this.parts.directory.live())) {
      try {
        return await work(channels.to(address), forwardSettings(context));
      } catch (error) {
        context.signal.throwIfAborted();
        const said = forwardedError(error);
        if (!(said instanceof EtudeError) || !mayHaveRoomElsewhere(said)) throw said;
        // Why the fullest one refused says less than why the emptiest did.
        refusal ??= said;
      }
    }
    throw refusal ?? noneLives();
  }

  close(): void {
    this.parts.channels?.close();
  }
}

/** Those with room first, and of them the one with the fewest sessions. */
const leastLoaded = (live: readonly ControllerAnnouncement[]) =>
  live.toSorted((a, b) => Number(a.sessions >= a.sessionsMax) - Number(b.sessions >= b.sessionsMax) || a.sessions - b.sessions);

/** How often and how long a controller that is away is called again. */
class Patience {
  tries = 0;
  #since: number | null = null;

  constructor(private readonly signal: AbortSignal) {}

  /** It was there. */
  renew(): void {
    this.#since = null;
  }

  /** Waits a little where calling again may help. @throws the signal's reason; EtudeError as the controller said, where it may not */
  async again(error: unknown): Promise<void> {
    this.signal.throwIfAborted();
    const isWorthIt = isAway(error) || (this.tries > 0 && errorCode(error) === 'SANDBOX_UNAVAILABLE');
    const now = performance.now();
    this.#since ??= now;
    if (!isWorthIt || now - this.#since > AWAY_MAX_MS) throw forwardedError(error);
    this.tries += 1;
    await unlessAborted(sleep(RETRY_MS), this.signal);
  }
}
