import type { Producer } from '../jobs/producer.js';
import type { Page } from '../redis/pages.js';
import { whileRedisAnswers } from '../redis/redis.js';
import { z } from 'zod';

export const auditConfig = z.object({
  /** Days for which the audit log keeps its entries. */
  ETUDE_AUDIT_DAYS: z.coerce.number().int().min(1).max(3_650).default(365),
});

/** Who did what. It holds names and ids, never texts. */
export interface AuditEntry {
  readonly id: string;
  /** ms since 1970. */
  readonly at: number;
  /** Name of the key, or subject of the token. */
  readonly actor: string;
  readonly roles: readonly string[];
  readonly call: string;
  /** Name of the target, such as "skills/add_tax"; '' if it has no name. */
  readonly target: string;
  /** "OK", or the code of the error. */
  readonly outcome: string;
}

const DAY_MS = 86_400_000;
const TARGET_CHARS_MAX = 200;
/** Gateways see a change of their key files within minutes of each other. */
const NOTED_S = 3_600;

/** One stream per tenant in Redis, cut by age. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class AuditLog {
  readonly #keptMs: number;

  constructor(
    private readonly producer: Producer,
    { ETUDE_AUDIT_DAYS: days }: z.infer<typeof auditConfig>,
    private readonly now: () => number = Date.now,
  ) {
    this.#keptMs = days * DAY_MS;
  }

  async add(tenant: string, { actor, roles, call, target, outcome }: Omit<AuditEntry, 'id' | 'at'>): Promise<void> {
    const { redis, keys } = this.producer;
    const fields = { actor, roles: roles.join(','), call, target: target.slice(0, TARGET_CHARS_MAX), outcome };
    const oldest = String(this.now() - this.#keptMs);
    await whileRedisAnswers(redis, redis.xadd(keys.audit(tenant), 'MINID', '~', oldest, '*', ...Object.entries(fields).flat()));
  }

  /** Adds an entry once, although several gateways see the change. @param digest of the change */
  async addOnce(digest: string, tenant: string, entry: Omit<AuditEntry, 'id' | 'at'>): Promise<void> {
    const { redis, keys } = this.producer;
    const isFirst = await whileRedisAnswers(redis, redis.set(keys.notedKeys(digest), '1', 'EX', NOTED_S, 'NX'));
    if (isFirst !== null) await this.add(tenant, entry);
  }

  /** Newest first. @param page.after `nextAfter` of the page before; @param page.days only entries of these last days */
  async list(
    tenant: string,
    { pageSize, after, days = 0 }: { readonly pageSize: number; readonly after?: string; readonly days?: number },
  ): Promise<Page<AuditEntry>> {
    const { redis, keys } = this.producer;
    const from = days > 0 ? String(this.now() - days * DAY_MS) : '-';
    const found = redis.xrevrange(keys.audit(tenant), after === undefined ? '+' : `(${after}`, from, 'COUNT', pageSize + 1);
    const entries = (await whileRedisAnswers(redis, found)).map(([id, flat]) => entryOf(id, flat));
    const items = entries.slice(0, pageSize);
    return { items, nextAfter: entries.length > pageSize ? (items.at(-1)?.id ?? null) : null };
  }
}

function entryOf(id: string, flat: readonly string[]): AuditEntry {
  // Only every second text is a field's name: callers choose actor and target, which may read "outcome" too.
  const value = (name: string) => flat[flat.findIndex((text, at) => at % 2 === 0 && text === name) + 1] ?? '';
  return {
    id,
    at: Number(id.split('-')[0]),
    actor: value('actor'),
    roles: value('roles').split(',').filter(Boolean),
    call: value('call'),
    target: value('target'),
    outcome: value('outcome'),
  };
}
