import type { SandboxSession } from '@etude/contracts/sandbox-session';
import type { Redis } from 'ioredis';
import type { RedisKeys } from '../redis/keys.js';
import { readStoredSession } from './sandbox-session-record.js';

export interface SessionFilter {
  readonly pageSize: number;
  /** Id of the last session seen; older ones follow. */
  readonly after?: string;
  readonly state?: SandboxSession['state'];
}

export interface SessionPage {
  readonly sessions: readonly SandboxSession[];
  /** Give it as `after` for what follows; null at the end. */
  readonly nextAfter: string | null;
}

/** Sessions looked at for one page, however few match. */
const SCAN_MAX = 2_000;
const CHUNK = 100;

/** One page of a tenant's sessions, newest first. */
export async function listSessions(redis: Redis, keys: RedisKeys, tenant: string, filter: SessionFilter): Promise<SessionPage> {
  const sessions: SandboxSession[] = [];
  let after = filter.after ?? '';
  for (let scanned = 0; scanned < SCAN_MAX; scanned += CHUNK) {
    const ids = await redis.zrevrangebylex(keys.sandboxes(tenant), after ? `(${after}` : '+', '-', 'LIMIT', 0, CHUNK);
    for (const [id, session] of await readAll(redis, keys, tenant, ids)) {
      if (session && (!filter.state || session.state === filter.state)) {
        if (sessions.length === filter.pageSize) return { sessions, nextAfter: after };
        sessions.push(session);
      }
      after = id;
    }
    if (ids.length < CHUNK) return { sessions, nextAfter: null };
  }
  return { sessions, nextAfter: after };
}

/** Drops ids from the index whose session is no longer kept. */
async function readAll(redis: Redis, keys: RedisKeys, tenant: string, ids: readonly string[]) {
  const reads = redis.pipeline();
  for (const id of ids) reads.hgetall(keys.sandbox(tenant, id));
  const answers = (await reads.exec()) ?? [];
  const found = ids.map((id, i) => {
    const [failure, fields] = answers[i] ?? [];
    if (failure) throw failure;
    return [id, readStoredSession(tenant, id, (fields ?? {}) as Record<string, string>)?.session ?? null] as const;
  });
  const gone = found.filter(([, session]) => !session).map(([id]) => id);
  if (gone.length > 0) await redis.zrem(keys.sandboxes(tenant), ...gone);
  return found;
}
