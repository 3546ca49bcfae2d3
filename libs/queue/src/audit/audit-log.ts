import type { Producer } from '../jobs/producer.js';
import type { Page, PageAsk } from '../redis/pages.js';
import { pairsOf, runScript, whileRedisAnswers } from '../redis/redis.js';
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
  /** "OK", the code of the error, or "UNKNOWN" for a call that still runs, or whose gateway died before it wrote the outcome. */
  readonly outcome: string;
  /** Number of equal refusals within the minute; 1 for any other outcome. */
  readonly count: number;
}
export type AuditFields = Omit<AuditEntry, 'id' | 'at' | 'count'>;

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const TARGET_CHARS_MAX = 200;
/** The most entries for one tenant's refused calls on a day (UTC). Further refusals share one entry. */
const REFUSALS_MAX = 1_000;
/** How long `addOnce` remembers a change. All gateways see a change of the key file within minutes. */
const NOTED_S = 3_600;

/** The audit log: one stream per tenant in Redis, which drops old entries. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class AuditLog {
  constructor(
    private readonly producer: Producer,
    private readonly config: z.infer<typeof auditConfig>,
    private readonly now: () => number = Date.now,
  ) {}

  /**
   * Adds an entry. Refusals of the same caller and call within a minute share one entry.
   *
   * @param entry null: the call changed nothing, so no entry is kept
   * @param begun id of the entry that was written when the call began; the new entry replaces it; '' if there is none
   * @returns the entry's id
   */
  write(tenant: string, entry: AuditFields | null, begun = ''): Promise<string> {
    const { redis, keys } = this.producer;
    const at = this.now();
    const { actor, roles = [], call, target = '', outcome } = entry ?? {};
    const group = outcome === 'PERMISSION_DENIED' ? JSON.stringify([Math.floor(at / MINUTE_MS), actor, call]) : '';
    const fields = entry && { actor, roles: roles.join(','), call, target: target.slice(0, TARGET_CHARS_MAX), outcome };
    const oldest = at - this.config.ETUDE_AUDIT_DAYS * DAY_MS;
    const args = [begun, oldest, group, REFUSALS_MAX, DAY_MS, ...Object.entries(fields ?? {}).flat()] as string[];
    const day = String(Math.floor(at / DAY_MS));
    return runScript(redis, 'writeAudit', [keys.audit(tenant), keys.refusedCalls(tenant, day)], args);
  }

  /** Adds an entry only once, even if several gateways see the same change. @param digest digest of the change */
  async addOnce(digest: string, tenant: string, entry: AuditFields): Promise<void> {
    const { redis, keys } = this.producer;
    const isFirst = await whileRedisAnswers(redis, redis.set(keys.notedKeys(digest), '1', 'EX', NOTED_S, 'NX'));
    if (isFirst !== null) await this.write(tenant, entry);
  }

  /** Newest first. @param page.after `nextAfter` of the previous page; @param page.days greatest age of an entry in days; 0: any age */
  async list(tenant: string, { pageSize, after, days = 0 }: PageAsk & { readonly days?: number }): Promise<Page<AuditEntry>> {
    const { redis, keys } = this.producer;
    const from = days > 0 ? String(this.now() - days * DAY_MS) : '-';
    const found = redis.xrevrange(keys.audit(tenant), after === undefined ? '+' : `(${after}`, from, 'COUNT', pageSize + 1);
    const entries = (await whileRedisAnswers(redis, found)).map(([id, flat]) => entryOf(id, flat));
    const items = entries.slice(0, pageSize);
    return { items, nextAfter: entries.length > pageSize ? (items.at(-1)?.id ?? null) : null };
  }
}

function entryOf(id: string, flat: readonly string[]): AuditEntry {
  const fields = new Map(pairsOf(flat));
  const value = (name: string) => fields.get(name) ?? '';
  return {
    id,
    at: Number(id.split('-')[0]),
    actor: value('actor'),
    roles: value('roles').split(',').filter(Boolean),
    call: value('call'),
    target: value('target'),
    outcome: value('outcome'),
    count: Number(value('count') || 1),
  };
}
