import { EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import { SandboxSession, type SESSION_STATES, type SessionRequest } from '@etude/contracts/sandbox';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { requestIdTaken } from '../jobs/durable-work.js';
import { parseStored } from '../jobs/job-end.js';
import { memberOf, newId, parseMember } from '../redis/keys.js';
import { answersOf, newestFirst, type Page, type PageAsk } from '../redis/pages.js';
import { RedisStore, unlessDamaged } from '../redis/redis.js';

/** How long a session is kept after its end. */
export const SESSION_KEPT_MS = 3_600_000;

type SessionState = (typeof SESSION_STATES)[number];
export type SessionEnd = Exclude<SessionState, 'open'>;

/** Why a session was not changed. `gone`: it is no longer kept. `fenced`: another controller holds it. Otherwise it has ended. */
type SessionRefusal = 'gone' | 'fenced' | SessionEnd;

interface SessionOwner {
  readonly controllerId: string;
  /** Where another controller can attach to the sandbox; null if none can. */
  readonly place: string | null;
}

export const newSandboxId = (): string => newId('s');

/**
 * The callers' sandbox sessions, shared by all processes. Only the controller that holds a session may change it. Each takeover raises the session's
 * owner epoch; a call with an earlier epoch is answered `fenced`.
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class SandboxSessionStore extends RedisStore {
  /** The session that an earlier call with this request id made; or null. @throws EtudeError ALREADY_EXISTS for another body */
  async findRequest(request: SessionRequest): Promise<StoredSession | null> {
    const known = await this.ask(this.redis.get(this.#requestKey(request)));
    if (!known) return null;
    const [digest, id = ''] = known.split(' ');
    if (digest !== digestOf(request)) throw requestIdTaken(request.requestId, `sandbox ${id}`, { sandbox: id });
    return this.#made(request, id);
  }

  /**
   * Records a session whose sandbox is claimed. `created` is false if the same request made a session before. Then `stored` is that
   * session, and the caller has to release its claim.
   *
   * @param id from `newSandboxId`
   * @param openMax how many open sessions a tenant may have
   * @throws EtudeError ALREADY_EXISTS (the request id was used with another body), SANDBOX_CAPACITY (the tenant has too many open)
   */
  async open(
    id: string,
    request: SessionRequest,
    owner: SessionOwner,
    openMax: number,
  ): Promise<{ readonly stored: StoredSession; readonly created: boolean }> {
    const { tenant, template, limits, labels, scratchpad, ttlMs, uncounted } = request;
    const keys = [...this.#of(tenant, id), this.keys.heldSandboxes(owner.controllerId), this.#requestKey(request), this.keys.line];
    const spec = { template, limits, labels, scratchpad } satisfies Partial<SandboxSession>;
    const fields = { spec: JSON.stringify(spec), controllerId: owner.controllerId, ...(owner.place !== null && { place: owner.place }) };
    const limit = uncounted ? '' : openMax;
    const args = [id, memberOf(tenant, id), digestOf(request), ttlMs, limit, ...Object.entries(fields).flat()];
    const [outcome, found] = await this.run<[string, string]>('openSandbox', keys, args);
    if (outcome === 'other') throw requestIdTaken(request.requestId, `sandbox ${found}`, { sandbox: found });
    if (outcome === 'full') throw quotaReached(tenant, Number(found), openMax);
    return { stored: await this.#made(request, found), created: outcome === 'created' };
  }

  /** null if this tenant has no such session. */
  async get(tenant: string, id: string): Promise<StoredSession | null> {
    return readStoredSession(tenant, id, await this.ask(this.redis.hgetall(this.keys.sandbox(tenant, id))));
  }

  /** Reads a session in a pass over many sessions. undefined: the record is damaged, and was logged. */
  getUnlessDamaged(tenant: string, id: string): Promise<StoredSession | null | undefined> {
    return unlessDamaged(this.redis, `sandbox ${id} of ${tenant}`, () => this.get(tenant, id));
  }

  /** Newest first. A short page may not be the last one: `nextAfter` is null only for the last page. */
  async list(tenant: string, filter: PageAsk & Partial<Pick<SandboxSession, 'state'>>): Promise<Page<SandboxSession>> {
    const look = async (ids: readonly string[]) => {
      const reads = this.redis.pipeline();
      for (const id of ids) reads.hgetall(this.keys.sandbox(tenant, id));
      return ((await answersOf(reads)) as ReadonlyArray<Record<string, string>>).map((fields, i) => {
        const load = async () => readStoredSession(tenant, ids[i] ?? '', fields)?.session ?? null;
        return fields['state'] ? { isWanted: !filter.state || fields['state'] === filter.state, load } : null;
      });
    };
    return this.ask(newestFirst(this.redis, this.keys.sandboxes(tenant), filter, look));
  }

  async openCount(tenant: string): Promise<number> {
    return this.ask(this.redis.scard(this.keys.openSandboxes(tenant)));
  }

  async renew(tenant: string, id: string, ownerEpoch: number, ttlMs: number): Promise<'renewed' | SessionRefusal> {
    return this.run('renewSandbox', this.#of(tenant, id), [ownerEpoch, ttlMs]);
  }

  /** Ends a session. The first end stays. */
  async end(tenant: string, id: string, ownerEpoch: number, state: SessionEnd, reason: string): Promise<'ended' | SessionRefusal> {
    const args = [memberOf(tenant, id), id, ownerEpoch, state, reason, SESSION_KEPT_MS, this.keys.heldSandboxes('')];
    return this.run('endSandbox', this.#of(tenant, id), args);
  }

  /** Makes `controllerId` the holder if the owner epoch is still `fromEpoch`. */
  async takeOver(
    tenant: string,
    id: string,
    fromEpoch: number,
    controllerId: string,
  ): Promise<{ readonly ownerEpoch: number; readonly remainingMs: number } | SessionRefusal> {
    const args = [memberOf(tenant, id), fromEpoch, controllerId, this.keys.heldSandboxes('')];
    const answer = await this.run<[string, string, string]>('takeOverSandbox', this.#of(tenant, id), args);
    const [outcome, epoch, remainingMs] = answer;
    return outcome === 'taken' ? { ownerEpoch: Number(epoch), remainingMs: Number(remainingMs) } : (outcome as SessionRefusal);
  }

  async heldBy(controllerId: string): Promise<ReadonlyArray<{ readonly tenant: string; readonly id: string }>> {
    const members = await this.ask(this.redis.smembers(this.keys.heldSandboxes(controllerId)));
    return members.flatMap((member) => parseMember(member) ?? []);
  }

  async #made(request: SessionRequest, id: string): Promise<StoredSession> {
    const stored = await this.get(request.tenant, id);
    if (stored) return stored;
    throw new EtudeError('NOT_FOUND', `sandbox ${id} of request_id "${request.requestId}" is no longer kept; use a new request_id`);
  }

  #of(tenant: string, id: string): string[] {
    const { keys } = this;
    return [keys.sandbox(tenant, id), keys.sandboxes(tenant), keys.openSandboxes(tenant)];
  }

  #requestKey({ tenant, requestId }: SessionRequest): string {
    return this.keys.request(tenant, 'sandbox', requestId);
  }
}

/** Digest of the fields that must be equal in a repeat with the same request id. */
const digestOf = ({ template, limits, ttlMs, labels, scratchpad }: SessionRequest): string =>
  contentDigest({ template, limits, ttlMs, labels, scratchpad });

export function quotaReached(tenant: string, open: number, openMax: number): EtudeError {
  const message = `tenant ${tenant} has ${open} open sandboxes, and may have at most ${openMax}; close one, or ask the operator for more`;
  return new EtudeError('SANDBOX_CAPACITY', message, { metadata: { exit: 'capacity', openMax: String(openMax), limit: 'sandboxes' } });
}

export interface StoredSession extends SessionOwner {
  readonly session: SandboxSession;
  /** Starts at 1 and rises with each takeover. */
  readonly ownerEpoch: number;
}

function readStoredSession(tenant: string, id: string, fields: Readonly<Record<string, string>>): StoredSession | null {
  if (!fields.state || !fields.spec) return null;
  const session = {
    ...(parsedJson(fields.spec) as object | undefined),
    id,
    tenant,
    state: fields.state,
    stateReason: fields.stateReason ?? '',
    createdAt: Number(fields.createdAt),
    expiresAt: Number(fields.expiresAt),
  };
  return {
    session: parseStored(SandboxSession, session, 'INTERNAL', `the record of sandbox ${id}`),
    controllerId: fields.controllerId ?? '',
    ownerEpoch: Number(fields.ownerEpoch),
    place: fields.place ?? null,
  };
}
