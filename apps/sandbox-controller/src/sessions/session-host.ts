import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { SandboxSession, SessionRequest } from '@etude/contracts/sandbox';
import { endedError, noSandboxError } from '@etude/contracts/sandbox-wire';
import { counter } from '@etude/platform/metrics';
import { memberOf } from '@etude/queue/redis/keys';
import type { QueueLogger } from '@etude/queue/redis/redis';
import {
  newSandboxId,
  quotaReached,
  type SandboxSessionStore,
  type SessionEnd,
  type StoredSession,
} from '@etude/queue/sandboxes/sandbox-sessions';
import type { ClaimedSandbox, SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { heldElsewhere, HeldSession, shuttingDown } from './held-session.js';

const sessionEnds = counter({ name: 'etude_sandbox_sessions_ended_total', help: 'Sessions that ended, by how', labels: ['state'] });

interface SessionHostParts {
  readonly controllerId: string;
  readonly driver: SandboxDriver;
  readonly store: SandboxSessionStore;
  readonly logger: QueueLogger;
  readonly sessionsMax: number;
  /** Maximum number of open sessions of a tenant, over all controllers. */
  readonly tenantSessionsMax: (tenant: string) => number;
}

interface End {
  readonly state: SessionEnd;
  readonly reason: string;
}

const STOPPED: End = { state: 'lost', reason: 'infra: its controller was stopped' };
const NEVER_HELD: End = { state: 'lost', reason: 'infra: no controller holds its sandbox' };
/** How long the readers of an execution wait for its outcome after its sandbox was destroyed. */
const STOP_WAIT_MS = 2_000;
const NEVER = new AbortController().signal;

/** The sessions whose sandboxes this controller holds. Each session is stored before its caller gets it. */
export class SessionHost {
  readonly #held = new Map<string, HeldSession>();
  /** Requests whose sandboxes are being claimed. They count as sessions before the store has a record of them. */
  readonly #opening = new Set<SessionRequest>();
  /** Ends of sessions that could not be stored yet, by session key. `reconcile` stores them. */
  readonly #unwritten = new Map<string, End>();
  #closing = false;

  constructor(private readonly parts: SessionHostParts) {}

  get sessionCount(): number {
    return this.#held.size + this.#opening.size;
  }

  get pool(): { readonly warm: number; readonly claimsWaiting: number } {
    const { free, waiting } = this.parts.driver.counts();
    return { warm: free, claimsWaiting: waiting };
  }

  /** @throws EtudeError ALREADY_EXISTS, SANDBOX_CAPACITY, SANDBOX_UNAVAILABLE, QUEUE_UNAVAILABLE, SHUTTING_DOWN */
  async open(request: SessionRequest, signal: AbortSignal): Promise<SandboxSession> {
    this.#refuseWhenClosing();
    const known = await this.parts.store.findRequest(request);
    if (known) return known.session;
    const openCount = await this.parts.store.openCount(request.tenant);
    this.#refuseWithoutRoom(request, openCount);
    this.#opening.add(request);
    try {
      return await this.#claimAndRecord(request, signal);
    } finally {
      this.#opening.delete(request);
    }
  }

  /** @throws EtudeError NOT_FOUND, FAILED_PRECONDITION (the session has ended), SANDBOX_UNAVAILABLE (another controller holds it or will) */
  async find(tenant: string, id: string): Promise<HeldSession> {
    this.#refuseWhenClosing();
    const held = this.#held.get(memberOf(tenant, id));
    if (held) return held;
    const { session, controllerId } = await this.#stored(tenant, id);
    throw session.state === 'open' ? heldElsewhere(id, controllerId) : endedError(session);
  }

  /** Takes a session over from a dead controller, unless another controller is faster. If the sandbox can't be reached, the session is lost. */
  async takeOver(stored: StoredSession): Promise<void> {
    const { session, place, controllerId: owner, ownerEpoch } = stored;
    const { tenant, id } = session;
    const { store, driver, controllerId, logger } = this.parts;
    const gone = `infra: its controller ${owner} ended`;
    if (place === null) return void (await store.end(tenant, id, ownerEpoch, 'lost', gone));
    const taken = await store.takeOver(tenant, id, ownerEpoch, controllerId);
    if (typeof taken === 'string') return;
    try {
      const sandbox = await driver.attach(place, NEVER);
      logger.info({ sandbox: id, from: owner, ownerEpoch: taken.ownerEpoch }, 'took over a session');
      this.#hold(session, taken.ownerEpoch, sandbox, taken.remainingMs);
    } catch (error) {
      await store.end(tenant, id, taken.ownerEpoch, 'lost', `${gone}, and its sandbox is gone: ${(error as Error).message}`);
    }
  }

  async renew(tenant: string, id: string, ttlMs: number): Promise<SandboxSession> {
    const held = await this.find(tenant, id);
    const answer = await this.parts.store.renew(tenant, id, held.ownerEpoch, ttlMs);
    const { session, controllerId } = await this.#stored(tenant, id);
    if (answer !== 'renewed') throw session.state === 'open' ? heldElsewhere(id, controllerId) : endedError(session);
    this.#expireIn(held, ttlMs);
    return session;
  }

  /** Closes the session and stops its execution. A session that has ended stays as it is. @throws EtudeError NOT_FOUND */
  async close(tenant: string, id: string): Promise<SandboxSession> {
    const { session } = await this.#stored(tenant, id);
    if (session.state === 'open') {
      const held = await this.find(tenant, id).catch((error: unknown) => {
        if (errorCode(error) !== 'FAILED_PRECONDITION') throw error;
      });
      if (held) await this.#end(held, { state: 'closed', reason: '' });
    }
    return (await this.#stored(tenant, id)).session;
  }

  /** Releases sessions that the store assigns to other controllers. Ends sessions of this controller whose sandbox isn't here. */
  async reconcile(): Promise<void> {
    const { store, controllerId } = this.parts;
    const before = [...this.#held.values()];
    const recorded = new Map((await store.heldBy(controllerId)).map((one) => [memberOf(one.tenant, one.id), one]));
    for (const held of before) {
      if (recorded.has(held.key) || this.#held.get(held.key) !== held) continue;
      const stored = await store.getUnlessDamaged(held.session.tenant, held.session.id);
      if (stored === undefined || (stored?.controllerId === controllerId && stored.session.state === 'open')) continue;
      await this.#letGo(held, stored);
    }
    for (const [key, { tenant, id }] of recorded) {
      if (this.#held.has(key)) continue;
      const end = this.#unwritten.get(key);
      const stored = end && (await store.getUnlessDamaged(tenant, id));
      // The session is ended only in the next round, because a claim or an attach may still be bringing its sandbox.
      if (!end) this.#unwritten.set(key, NEVER_HELD);
      if (end && stored?.controllerId === controllerId) await store.end(tenant, id, stored.ownerEpoch, end.state, end.reason);
    }
    for (const key of this.#unwritten.keys()) if (!recorded.has(key) || this.#held.has(key)) this.#unwritten.delete(key);
  }

  /** Leaves the sessions that other controllers can take over. Ends all other sessions as lost. */
  async shutDown(): Promise<void> {
    this.#closing = true;
    const all = [...this.#held.values()];
    await Promise.allSettled(
      all.map(async (held) => {
        if (held.sandbox.place === null) {
          held.stop(endedError({ ...held.session, state: STOPPED.state, stateReason: STOPPED.reason }));
          return this.#end(held, STOPPED);
        }
        this.#held.delete(held.key);
        held.stop(shuttingDown());
        await held.sandbox.leave?.();
      }),
    );
  }

  async #claimAndRecord(request: SessionRequest, signal: AbortSignal): Promise<SandboxSession> {
    const { driver, store, controllerId, tenantSessionsMax } = this.parts;
    const { template, limits } = request;
    const claimed = await driver.claim({ template, memoryMiB: limits.memoryMiB, diskMiB: limits.diskMiB }, signal);
    try {
      signal.throwIfAborted();
      this.#refuseWhenClosing();
      const owner = { controllerId, place: claimed.place };
      const { stored, created } = await store.open(newSandboxId(), request, owner, tenantSessionsMax(request.tenant));
      if (created) this.#hold(stored.session, stored.ownerEpoch, claimed, request.ttlMs);
      else await claimed.release();
      return stored.session;
    } catch (error) {
      await claimed.release();
      throw error;
    }
  }

  #hold(session: SandboxSession, ownerEpoch: number, sandbox: ClaimedSandbox, remainingMs: number): void {
    const held = new HeldSession(session, ownerEpoch, sandbox);
    this.#held.set(held.key, held);
    this.#expireIn(held, remainingMs);
    void sandbox.lost.then(({ exit, message }) => this.#end(held, { state: 'lost', reason: `${exit}: ${message}` }));
  }

  #expireIn(held: HeldSession, ms: number): void {
    held.expireIn(ms, () => void this.#end(held, { state: 'expired', reason: '' }));
  }

  /** Ends a session; a second call does nothing. The sandbox is destroyed even while Redis is away. */
  async #end(held: HeldSession, how: End): Promise<void> {
    if (this.#held.get(held.key) !== held) return;
    this.#held.delete(held.key);
    const { session, ownerEpoch, key } = held;
    const { state, reason } = how;
    sessionEnds.inc({ state });
    const end = endedError({ ...session, state, stateReason: reason });
    const stopped = held.endBy(state, end);
    const released = held.sandbox.release().catch((error: unknown) => this.#report(held, error, 'a sandbox could not be destroyed'));
    await this.parts.store.end(session.tenant, session.id, ownerEpoch, state, reason).catch((error: unknown) => {
      this.#unwritten.set(key, how);
      this.#report(held, error, 'the end of a session could not be stored and is retried');
    });
    await released;
    await Promise.race([stopped, sleep(STOP_WAIT_MS, undefined, { ref: false })]);
    held.stop(end);
  }

  async #letGo(held: HeldSession, stored: StoredSession | null): Promise<void> {
    this.#held.delete(held.key);
    const { id } = held.session;
    if (stored?.session.state === 'open') {
      held.stop(heldElsewhere(id, stored.controllerId));
      await held.sandbox.leave?.();
    } else {
      held.stop(stored ? endedError(stored.session) : noSandboxError(id));
      await held.sandbox.release();
    }
    this.parts.logger.warn({ sandbox: id, holder: stored?.controllerId }, 'released a session that has ended or was taken over');
  }

  async #stored(tenant: string, id: string): Promise<StoredSession> {
    const stored = await this.parts.store.get(tenant, id);
    if (!stored) throw noSandboxError(id);
    return stored;
  }

  #refuseWithoutRoom({ tenant, uncounted = false }: SessionRequest, openCount: number): void {
    const { sessionsMax, tenantSessionsMax } = this.parts;
    const opening = [...this.#opening].filter((request) => request.tenant === tenant && !request.uncounted).length;
    if (this.sessionCount >= sessionsMax) {
      const message = `This controller already holds ${sessionsMax} sandboxes, its limit. Try another controller, or try again later.`;
      throw new EtudeError('SANDBOX_CAPACITY', message, { metadata: { exit: 'capacity' } });
    }
    const openMax = tenantSessionsMax(tenant);
    if (uncounted || openCount + opening < openMax) return;
    throw quotaReached(tenant, openCount + opening, openMax);
  }

  #refuseWhenClosing(): void {
    if (this.#closing) throw shuttingDown();
  }

  #report({ session }: HeldSession, error: unknown, message: string): void {
    this.parts.logger.warn({ sandbox: session.id, reason: (error as Error).message }, message);
  }
}
