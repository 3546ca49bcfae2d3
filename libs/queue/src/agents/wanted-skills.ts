import { EtudeError } from '@etude/contracts/errors';
import { SkillRequest } from '@etude/contracts/queues';
import { WantedSkill } from '@etude/contracts/skill-proof';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { z } from 'zod';
import { parseOr } from '../jobs/job-end.js';
import { type DurableWork, requestIdTaken } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';
import { memberOf, RETENTION_MS } from '../redis/keys.js';

/** Of every wish: whoever asks waits for it. */
const PRIORITY = 7;
/** Limits of what a model is shown of a wish. A longer example is left out, since a part of one would mislead. */
const DESCRIPTION_MAX_CHARS = 4_000;
const EXAMPLE_MAX_CHARS = 16_000;
/** How often a model is asked for the same skill; after that a person has to write it. */
export const ROUNDS_MAX = 5;
/** Wishes of one agent that wait or are being written: each costs a model's time. */
export const OPEN_MAX = 20;
/** Wishes that are over are kept that long. */
const WISH_KEPT_MS = 30 * 86_400_000;

/** A skill that somebody misses. `vouchedBy`: name of the reviewer who asked, whose words are trusted. */
export interface Wish {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
  readonly skill: string;
  readonly description: string;
  readonly example: WantedSkill['example'];
  readonly vouchedBy?: string;
}

const OPEN_STATES: ReadonlySet<string> = new Set(['waiting', 'writing']);

const WISH_FIELDS = { id: true, tenant: true, agent: true, user: true, skill: true, description: true, example: true } as const;
const StoredWish = WantedSkill.pick(WISH_FIELDS).extend({ vouchedBy: z.string().optional() });

/** A wish, each time that it is to be fulfilled: what an earlier round still does changes nothing of a later one. */
export interface WishRound {
  readonly tenant: string;
  readonly id: string;
  readonly round: number;
}

/** A wish as the worker has it. */
export interface StoredWantedSkill {
  readonly round: number;
  readonly wanted: WantedSkill;
  readonly vouchedBy: string | null;
  /** JSON of the skill that was written for it; null until then. */
  readonly draft: string | null;
}

export type WishEnd = Pick<WantedSkill, 'state' | 'reason' | 'registered' | 'scripted'>;

/** By what a wish was when it was to be withdrawn. */
const WITHDRAWN_TOO_LATE: Readonly<Record<string, string>> = {
  written: 'is written, and about to be registered; reject or archive the skill',
  registered: 'is registered; reject or archive the skill',
  failed: 'has failed, and is not written any more',
};

function bounded(wish: Wish): Wish {
  const isLong = JSON.stringify(wish.example).length > EXAMPLE_MAX_CHARS;
  return { ...wish, description: wish.description.slice(0, DESCRIPTION_MAX_CHARS), ...(isLong ? { example: null } : {}) };
}

/** The same wish of the same reader has the same id. */
function wishIdOf({ tenant, agent, user, skill }: Pick<Wish, 'tenant' | 'agent' | 'user' | 'skill'>): string {
  return `w${contentDigest([tenant, agent, user, skill]).slice(0, 31)}`;
}

/**
 * Skills that somebody missed: a record, then its job `skill.request`.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class WantedSkills {
  /** @param openMax wishes of one agent that are not over */
  constructor(
    private readonly producer: Producer,
    private readonly openMax: number = OPEN_MAX,
  ) {}

  /** Wishes that are not over, for the reconciler. A wish whose job is dead has failed. */
  get work(): DurableWork {
    return {
      name: 'wanted skills',
      outbox: this.producer.keys.wantedSkillOutbox,
      queue: SkillRequest,
      due: async (tenant, id) => {
        const wanted = await this.get(tenant, id);
        if (wanted === null || !OPEN_STATES.has(wanted.state)) return null;
        return { payload: { v: 1, tenant, id }, options: { priority: wanted.priority } };
      },
      onDead: async (tenant, id, { code, message }) => {
        const stored = await this.load(tenant, id);
        if (stored === null) return 'over';
        const { scripted } = stored.wanted;
        const end = { state: 'failed', reason: `${code}: ${message}`, registered: null, scripted } as const;
        await this.end({ tenant, id, round: stored.round }, end);
        return 'over';
      },
    };
  }

  /**
   * Durable when this returns. The same wish again answers the first one, which counts how often it was asked for.
   *
   * @throws EtudeError ALREADY_EXISTS where the request id was used for another wish; FAILED_PRECONDITION where so many of the agent's are open
   */
  async request({ wish: asked, requestId }: { readonly wish: Wish; readonly requestId: string }): Promise<WantedSkill> {
    const wish = bounded(asked);
    const { keys } = this.producer;
    const { tenant, agent } = wish;
    const id = wishIdOf(wish);
    const request = requestId === '' ? '' : keys.request(tenant, 'wish', requestId);
    const more = [keys.wantedSkills(tenant), keys.wantedSkillOutbox, keys.openWishes(tenant, agent), request];
    const texts = [id, memberOf(tenant, id), contentDigest(wish), JSON.stringify({ ...wish, id })];
    const limits = [PRIORITY, RETENTION_MS, ROUNDS_MAX, agent, this.openMax];
    const [outcome] = await this.#run<[string]>('requestWish', { tenant, id }, [...texts, ...limits], more);
    if (outcome === 'other') throw requestIdTaken(requestId, 'another wish', {});
    if (outcome === 'full')
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `Agent "${agent}" has ${this.openMax} skills asked for that are not written yet, and no more are taken (ETUDE_SKILLS_WISHES_OPEN_MAX); ask again when some are.`,
      );
    if (outcome === 'created') await this.#enqueue(tenant, id);
    const stored = await this.get(tenant, id);
    if (stored === null) throw new EtudeError('NOT_FOUND', `the wish for "${wish.skill}" was erased while it was made`);
    return stored;
  }

  async get(tenant: string, id: string): Promise<WantedSkill | null> {
    return (await this.load(tenant, id))?.wanted ?? null;
  }

  /** Newest first. @param options.user sees their own wishes and those without a user; null: only those without; undefined: all */
  async list(
    tenant: string,
    { limit, after = null, agent = null, user }: { limit: number; after?: string | null; agent?: string | null; user?: string | null },
  ): Promise<{ readonly wishes: readonly WantedSkill[]; readonly nextAfter: string | null }> {
    const { redis, keys } = this.producer;
    const index = keys.wantedSkills(tenant);
    const wishes: WantedSkill[] = [];
    const rank = after === null ? -1 : await whileRedisAnswers(redis, redis.zrevrank(index, after));
    // The wish that the page before ended with was erased meanwhile.
    if (rank === null) return { wishes, nextAfter: null };
    for (let start = rank + 1; wishes.length <= limit; start += limit) {
      const ids = await whileRedisAnswers(redis, redis.zrevrange(index, start, start + limit - 1));
      const found = await Promise.all(ids.map((id) => this.get(tenant, id)));
      const known = found.filter((wanted) => wanted !== null);
      const seen = known.filter((wanted) => user === undefined || wanted.user === null || wanted.user === user);
      wishes.push(...seen.filter((wanted) => agent === null || wanted.agent === agent));
      if (ids.length < limit) break;
    }
    const page = wishes.slice(0, limit);
    return { wishes: page, nextAfter: wishes.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  /** For the worker. null where there is none. */
  async load(tenant: string, id: string): Promise<StoredWantedSkill | null> {
    const { redis, keys } = this.producer;
    const fields = await whileRedisAnswers(redis, redis.hgetall(keys.wantedSkill(tenant, id)));
    if (fields['wish'] === undefined) return null;
    const what = `wish ${id}`;
    const { vouchedBy = null, ...wish } = parseOr(StoredWish, JSON.parse(fields['wish']), 'INTERNAL', what);
    const wanted = parseOr(
      WantedSkill,
      {
        ...wish,
        state: fields['state'],
        reason: fields['reason'] ?? '',
        priority: Number(fields['priority']),
        asked: Number(fields['asked']),
        registered: fields['registered'] || null,
        scripted: fields['scripted'] === '1',
        createdAt: Number(fields['createdAt']),
        updatedAt: Number(fields['updatedAt']),
      },
      'INTERNAL',
      what,
    );
    return { round: Number(fields['round']), wanted, vouchedBy, draft: fields['draft'] ?? null };
  }

  /** For the worker. False: it is gone or over, and nothing is to be done for it. */
  async begin(wish: WishRound, reason = ''): Promise<boolean> {
    return (await this.#run<number>('putWish', wish, [wish.round, 'state', 'writing', 'reason', reason])) === 1;
  }

  /** Keeps the draft; from here on the wish can't be withdrawn. Answers the first draft that was kept, or null where the round is over. */
  async keepDraft(wish: WishRound, draft: string): Promise<string | null> {
    return this.#run<string | null>('keepWishDraft', wish, [wish.round, draft]);
  }

  /** False where the round was over before, and nothing changed. */
  async end(wish: WishRound, end: WishEnd): Promise<boolean> {
    const fields = { ...end, registered: end.registered ?? '', scripted: end.scripted ? 1 : 0 };
    const args = [wish.round, memberOf(wish.tenant, wish.id), WISH_KEPT_MS, ...Object.entries(fields).flat()];
    return (await this.#run<number>('endWish', wish, args, [this.producer.keys.wantedSkillOutbox])) === 1;
  }

  /**
   * Takes a wish back, with its job. The answer of a model that is already asked is dropped. Again: nothing changes.
   *
   * @throws EtudeError NOT_FOUND; FAILED_PRECONDITION where it is over, or written and about to be registered
   */
  async withdraw(tenant: string, id: string, reason: string): Promise<WantedSkill> {
    const { redis, keys } = this.producer;
    const args = [memberOf(tenant, id), WISH_KEPT_MS, reason];
    const was = await this.#run<string>('withdrawWish', { tenant, id }, args, [keys.wantedSkillOutbox]);
    const refusal = WITHDRAWN_TOO_LATE[was];
    if (refusal !== undefined) throw new EtudeError('FAILED_PRECONDITION', `wantedSkills/${id} ${refusal}`);
    // One that a worker holds stays: it finds that there is nothing left to do.
    await whileRedisAnswers(redis, this.producer.queue(SkillRequest.name).remove(SkillRequest.jobId({ v: 1, tenant, id })));
    const wanted = await this.get(tenant, id);
    if (wanted === null) throw new EtudeError('NOT_FOUND', `There is no wantedSkills/${id}.`);
    return wanted;
  }

  #run<Answer>(
    script: string,
    { tenant, id }: Pick<WishRound, 'tenant' | 'id'>,
    args: ReadonlyArray<string | number>,
    moreKeys: readonly string[] = [],
  ): Promise<Answer> {
    const { redis, keys } = this.producer;
    return runScript<Answer>(redis, script, [keys.wantedSkill(tenant, id), ...moreKeys], args);
  }

  /** The job of an earlier round has ended; its id is used again. */
  async #enqueue(tenant: string, id: string): Promise<void> {
    const payload = { v: 1 as const, tenant, id };
    // Redis away: the reconciler adds the job.
    await this.producer.forget(SkillRequest.name, SkillRequest.jobId(payload)).catch(() => undefined);
    await this.producer.addForRecord(SkillRequest, payload, { priority: PRIORITY });
  }
}
