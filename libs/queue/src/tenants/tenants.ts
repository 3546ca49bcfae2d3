import type { Producer } from '../jobs/producer.js';
import type { Page } from '../redis/pages.js';
import { whileRedisAnswers } from '../redis/redis.js';
import { dayOf, type SpendStore } from '../spend/spend-store.js';
import type { TenantLimits, TenantLimitsOf } from '../limits/tenant-limits.js';

/** What a tenant uses now, and today (UTC). */
export interface TenantUse {
  readonly tenant: string;
  readonly limits: TenantLimits;
  readonly waiting: number;
  /** Unfinished tasks that have started, also those that wait for an answer. */
  readonly running: number;
  readonly sandboxes: number;
  readonly tokensToday: number;
  readonly usdToday: number;
  /** Calls that a limit of the tenant refused. */
  readonly refusedToday: number;
}

const REFUSALS_KEPT_S = 2 * 86_400;

/** What tenants use, and how often they were refused. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class Tenants {
  constructor(
    private readonly producer: Producer,
    private readonly spend: SpendStore,
    private readonly limitsOf: TenantLimitsOf,
  ) {}

  async countRefusal(tenant: string): Promise<void> {
    const { redis, keys } = this.producer;
    const day = keys.refusals(dayOf(Date.now()));
    const write = redis.multi().hincrby(day, tenant, 1).expire(day, REFUSALS_KEPT_S).hsetnx(keys.line, tenant, 0);
    await whileRedisAnswers(redis, write.exec());
  }

  /** Tenants that use something now or did today, by name. A short page may not be the last one. */
  async list({ pageSize, after = '' }: { readonly pageSize: number; readonly after?: string }): Promise<Page<TenantUse>> {
    const { redis, keys } = this.producer;
    const fields = await whileRedisAnswers(redis, redis.hkeys(keys.line));
    // Fields of the line itself begin with "/".
    const names = fields.filter((name) => !name.startsWith('/') && name > after).toSorted();
    const page = names.slice(0, pageSize);
    const uses = await Promise.all(page.map((tenant) => this.#use(tenant)));
    return {
      items: uses.filter((use) => Object.values({ ...use, limits: 0, tenant: 0 }).some((value) => value > 0)),
      nextAfter: names.length > pageSize ? (page.at(-1) ?? null) : null,
    };
  }

  async #use(tenant: string): Promise<TenantUse> {
    const { redis, keys } = this.producer;
    const [waiting, open, sandboxes, refused, spent] = await Promise.all([
      whileRedisAnswers(redis, redis.zcard(keys.waitingTasks(tenant))),
      whileRedisAnswers(redis, redis.scard(keys.openTasks(tenant))),
      whileRedisAnswers(redis, redis.scard(keys.openSandboxes(tenant))),
      whileRedisAnswers(redis, redis.hget(keys.refusals(dayOf(Date.now())), tenant)),
      this.spend.today(tenant),
    ]);
    return {
      tenant,
      limits: this.limitsOf(tenant),
      waiting,
      running: Math.max(0, open - waiting),
      sandboxes,
      tokensToday: spent.tokens,
      usdToday: spent.usd,
      refusedToday: Number(refused ?? 0),
    };
  }
}
