import { EtudeError } from '@etude/contracts/errors';
import type { ChatModel, ChatResponse, ModelAccount } from '@etude/domain/ports/model';
import type { z } from 'zod';
import type { Producer } from '../jobs/producer.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';
import { limitsFrom, type TenantLimits, type tenantLimitsConfig, type TenantLimitsOf } from '../limits/tenant-limits.js';
import { namesAfter, type Page, type PageAsk } from '../redis/pages.js';

/** Model calls of one day (UTC, "2026-11-28"), agent and purpose. */
export interface Spend {
  readonly day: string;
  readonly agent: string;
  readonly purpose: string;
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costUsd: number;
}

type Cost = Pick<ChatResponse, 'inputTokens' | 'outputTokens' | 'costUsd'>;

const DAY_MS = 86_400_000;
const KEPT_S = 400 * 86_400;
const MICRO = 1_000_000;
const MEASURES = ['modelCalls', 'inputTokens', 'outputTokens', 'microUsd'] as const;
/** The UTC day of a time in ms since 1970. */
const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/**
 * What tenants spend on model calls. A call is counted after its answer. A call that is cut off earlier isn't counted, although its server may charge
 * for it. @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class SpendStore {
  readonly limitsOf: TenantLimitsOf;

  constructor(
    private readonly producer: Producer,
    config: z.infer<typeof tenantLimitsConfig>,
    private readonly now: () => number = Date.now,
  ) {
    this.limitsOf = limitsFrom(config);
  }

  async count({ tenant, agent, purpose }: ModelAccount, { inputTokens, outputTokens, costUsd }: Cost): Promise<void> {
    const { redis, keys } = this.producer;
    const counted = { modelCalls: 1, inputTokens, outputTokens, microUsd: Math.round(costUsd * MICRO) };
    const amounts = MEASURES.flatMap((measure) => [JSON.stringify([agent, purpose, measure]), counted[measure]]);
    await runScript(redis, 'countSpend', [keys.spend(tenant, dayOf(this.now())), keys.line], [tenant, KEPT_S, ...amounts]);
  }

  /** Newest day first, then by agent and purpose. @param days UTC days up to today */
  async list(tenant: string, days: number, agent?: string): Promise<readonly Spend[]> {
    const from = this.now();
    const wanted = Array.from({ length: days }, (_, at) => dayOf(from - at * DAY_MS));
    const found = await Promise.all(wanted.map((day) => this.#ofDay(tenant, day)));
    return found.flat().filter((spend) => agent === undefined || spend.agent === agent);
  }

  /** @throws EtudeError BUDGET_USED_UP with the time until the next day */
  async requireBudget(tenant: string): Promise<void> {
    const { tokensPerDay, usdPerDay } = this.limitsOf(tenant);
    if (tokensPerDay === 0 && usdPerDay === 0) return;
    const { tokens, usd } = await this.today(tenant);
    if (tokensPerDay > 0 && tokens >= tokensPerDay) throw this.#usedUp(`${tokens} of ${tokensPerDay} model tokens`);
    if (usdPerDay > 0 && usd >= usdPerDay) throw this.#usedUp(`${usd.toFixed(2)} of ${usdPerDay.toFixed(2)} US dollars for models`);
  }

  async today(tenant: string): Promise<{ readonly tokens: number; readonly usd: number }> {
    const spent = await this.#ofDay(tenant, dayOf(this.now()));
    const sum = (of: (spend: Spend) => number) => spent.reduce((total, spend) => total + of(spend), 0);
    return { tokens: sum(({ inputTokens, outputTokens }) => inputTokens + outputTokens), usd: sum(({ costUsd }) => costUsd) };
  }

  #usedUp(what: string): EtudeError {
    const message = `the tenant has used ${what} today; try again after midnight UTC, or ask the operator to raise the budget`;
    return new EtudeError('BUDGET_USED_UP', message, { retryAfterMs: DAY_MS - (this.now() % DAY_MS), metadata: { limit: 'budget' } });
  }

  async #ofDay(tenant: string, day: string): Promise<readonly Spend[]> {
    const { redis, keys } = this.producer;
    const fields = await whileRedisAnswers(redis, redis.hgetall(keys.spend(tenant, day)));
    const owners = new Map(
      Object.keys(fields)
        .map((field) => JSON.parse(field) as [string, string])
        .map((of) => [JSON.stringify([of[0], of[1]]), of]),
    );
    const spends = [...owners.values()].map(([agent, purpose]) => {
      const value = (measure: (typeof MEASURES)[number]) => Number(fields[JSON.stringify([agent, purpose, measure])] ?? 0);
      const [modelCalls, inputTokens, outputTokens] = [value('modelCalls'), value('inputTokens'), value('outputTokens')];
      return { day, agent, purpose, modelCalls, inputTokens, outputTokens, costUsd: value('microUsd') / MICRO };
    });
    return spends.toSorted((a, b) => (`${a.agent} ${a.purpose}` < `${b.agent} ${b.purpose}` ? -1 : 1));
  }
}

/** Gives a model budgets. A call for a tenant that has used up its budget is refused. Other calls are counted in `spend`, and passed to `onSpent`. */
export function metered(model: ChatModel, spend: SpendStore, onSpent?: (account: ModelAccount, cost: Cost) => void): ChatModel {
  return {
    async chat(request, signal) {
      const { account } = request;
      if (account === undefined) return model.chat(request, signal);
      await spend.requireBudget(account.tenant);
      const answer = await model.chat(request, signal);
      await spend.count(account, answer);
      onSpent?.(account, answer);
      return answer;
    },
  };
}

/** What a tenant uses now, and today (UTC). */
interface TenantUse {
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
  ) {}

  async countRefusal(tenant: string): Promise<void> {
    const { redis, keys } = this.producer;
    const day = keys.refusals(dayOf(Date.now()));
    const write = redis.multi().hincrby(day, tenant, 1).expire(day, REFUSALS_KEPT_S).hsetnx(keys.line, tenant, 0);
    await whileRedisAnswers(redis, write.exec());
  }

  /** Tenants that use something now or have done so today, by name. A short page may not be the last one. */
  async list({ pageSize, after = '' }: PageAsk): Promise<Page<TenantUse>> {
    const { redis, keys } = this.producer;
    const fields = await whileRedisAnswers(redis, redis.hkeys(keys.line));
    // Fields of the line itself begin with "/".
    const tenants = fields.filter((name) => !name.startsWith('/'));
    const page = namesAfter(tenants, after, pageSize + 1);
    const uses = await Promise.all(page.slice(0, pageSize).map((tenant) => this.#use(tenant)));
    return {
      items: uses.filter((use) => Object.values({ ...use, limits: 0, tenant: 0 }).some((value) => value > 0)),
      nextAfter: page.length > pageSize ? (uses.at(-1)?.tenant ?? null) : null,
    };
  }

  async #use(tenant: string): Promise<TenantUse> {
    const { redis, keys } = this.producer;
    const counts = Promise.all([
      redis.zcard(keys.waitingTasks(tenant)),
      redis.scard(keys.openTasks(tenant)),
      redis.scard(keys.openSandboxes(tenant)),
      redis.hget(keys.refusals(dayOf(Date.now())), tenant),
      this.spend.today(tenant),
    ]);
    const [waiting, open, sandboxes, refused, spent] = await whileRedisAnswers(redis, counts);
    return {
      tenant,
      limits: this.spend.limitsOf(tenant),
      waiting,
      running: Math.max(0, open - waiting),
      sandboxes,
      tokensToday: spent.tokens,
      usdToday: spent.usd,
      refusedToday: Number(refused ?? 0),
    };
  }
}
