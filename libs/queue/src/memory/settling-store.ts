import { MemorySettleJob } from '@etude/contracts/queues';
import type { Producer } from '../jobs/producer.js';
import { RedisStore } from '../redis/redis.js';

/** What comparing a tenant's facts has cost. */
export interface SettlingSpend {
  readonly calls: number;
  readonly callsToday: number;
  /** Estimated from the size of the prompts. */
  readonly promptTokens: number;
  /** Why the last attempt failed; null if it didn't. */
  readonly failure: string | null;
}

/** Jobs are due at multiples of this, so that a burst of facts makes few jobs. */
const INTERVAL_MS = 15_000;
/** Each fact earns 0.15 calls and 450 prompt tokens. `calls` and `promptTokens` are an allowance for tenants with few facts. */
const CREDIT = { calls: 2, callsPerFact: 0.15, promptTokens: 4_000, promptTokensPerFact: 450 };
/** The credit that this number of facts has earned, less what is spent. */
export function creditFor(facts: number, spent: { readonly calls: number; readonly promptTokens: number }) {
  return {
    calls: Math.floor(CREDIT.calls + facts * CREDIT.callsPerFact - spent.calls),
    promptTokens: CREDIT.promptTokens + facts * CREDIT.promptTokensPerFact - spent.promptTokens,
  };
}

/** Longer than most model calls. Each call renews the lease. */
const LEASE_MS = 120_000;

/** Lets one worker at a time compare a tenant's facts, and counts the costs. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class SettlingStore extends RedisStore {
  constructor(private readonly producer: Producer) {
    super(producer.redis, producer.keys);
  }

  /** Adds a job that compares the tenant's facts at the first full interval after `waitMs`. Calls for the same interval share one job. */
  async request(tenant: string, waitMs = 0): Promise<void> {
    const now = Date.now();
    const at = (Math.floor((now + waitMs) / INTERVAL_MS) + 1) * INTERVAL_MS;
    await this.producer.addForRecord(MemorySettleJob, { v: 1, tenant, at }, { delayMs: at - now });
  }

  /** Takes the tenant's lease for `holder`, or returns false if another holds it. */
  async take(tenant: string, holder: string): Promise<boolean> {
    return (await this.ask(this.redis.set(this.keys.settlingLease(tenant), holder, 'PX', LEASE_MS, 'NX'))) === 'OK';
  }

  /** Releases the lease and stores why the work failed; null: it succeeded. */
  async end(tenant: string, holder: string, failure: string | null): Promise<void> {
    await this.run('endSettling', [this.keys.settling(tenant), this.keys.settlingLease(tenant)], [holder, failure ?? '']);
  }

  /** The calls and prompt tokens that are left of the credit and of the day's calls. @param facts how many the tenant has now */
  async left(tenant: string, facts: number, callsPerDay: number): Promise<{ calls: number; promptTokens: number }> {
    const day = new Date().toISOString().slice(0, 10);
    const read = this.run<[number, number, number, number]>('readSettling', [this.keys.settling(tenant)], [facts, day]);
    const [seen, calls, today, tokens] = await read;
    const credit = creditFor(seen, { calls, promptTokens: tokens });
    return { ...credit, calls: Math.min(callsPerDay - today, credit.calls) };
  }

  /** Counts one call before it is made. */
  async charge(tenant: string, promptTokens: number): Promise<void> {
    await this.run('chargeSettling', [this.keys.settling(tenant), this.keys.settlingLease(tenant)], [promptTokens, LEASE_MS]);
  }

  async spend(tenant: string): Promise<SettlingSpend> {
    const { calls, day, dayCalls, promptTokens, failure } = await this.ask(this.redis.hgetall(this.keys.settling(tenant)));
    const isToday = day === new Date().toISOString().slice(0, 10);
    return {
      calls: Number(calls ?? 0),
      callsToday: isToday ? Number(dayCalls) : 0,
      promptTokens: Number(promptTokens ?? 0),
      failure: failure ?? null,
    };
  }
}
