import { EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import { SkillRequest } from '@etude/contracts/queues';
import { WantedSkill } from '@etude/contracts/skill-proof';
import type { SkillWishes } from '@etude/domain/tools/tool-definition';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { z } from 'zod';
import { parseOr } from '../jobs/job-end.js';
import { type DurableWork, requestIdTaken } from '../jobs/durable-work.js';
import type { Producer } from '../jobs/producer.js';
import { RedisStore, unlessDamaged } from '../redis/redis.js';
import { memberOf, RETENTION_MS } from '../redis/keys.js';

/** The priority that callers see for every wish. Jobs ignore it: they run in the order of the wishes. */
const PRIORITY = 7;
/** Limits of a wish's texts that the model sees. A longer description is cut. A longer example is left out, since a part would mislead. */
const DESCRIPTION_MAX_CHARS = 4_000;
const EXAMPLE_MAX_CHARS = 16_000;
/** How many rounds a model gets for the same skill. Afterwards a person has to write the skill. */
export const ROUNDS_MAX = 5;
/** The most open wishes of one agent. Why a limit: each wish costs a model's time. */
export const OPEN_MAX = 20;
const WISH_KEPT_MS = 30 * 86_400_000;

/** A wish is a request for a skill. `vouchedBy`: name of the reviewer who asked; a reviewer's text is trusted. */
export interface Wish extends Pick<WantedSkill, 'tenant' | 'agent' | 'user' | 'skill' | 'description' | 'example'> {
  readonly vouchedBy?: string;
}

const OPEN_STATES: ReadonlySet<string> = new Set(['waiting', 'writing']);

const StoredWish = WantedSkill.extend({ vouchedBy: z.string().optional() });

/** One round of a wish. Each new attempt at a wish is a new round. The worker of an earlier round can't change a later round. */
export interface WishRound {
  readonly tenant: string;
  readonly id: string;
  readonly round: number;
}

/** A wish with the fields that only the worker needs. */
export interface StoredWantedSkill {
  readonly round: number;
  readonly wanted: WantedSkill;
  readonly vouchedBy: string | null;
  /** JSON of the skill that was written for the wish; null until then. */
  readonly draft: string | null;
}

export type WishEnd = Pick<WantedSkill, 'state' | 'reason' | 'registered' | 'scripted'>;

function bounded(wish: Wish): Wish {
  const isLong = JSON.stringify(wish.example).length > EXAMPLE_MAX_CHARS;
  return { ...wish, description: wish.description.slice(0, DESCRIPTION_MAX_CHARS), ...(isLong ? { example: null } : {}) };
}

/** The wishes of one agent and user for the same skill have the same id. */
function wishIdOf({ tenant, agent, user, skill }: Pick<Wish, 'tenant' | 'agent' | 'user' | 'skill'>): string {
  return `w${contentDigest([tenant, agent, user, skill]).slice(0, 31)}`;
}

/** Wishes for skills. The record of a wish is written first; its job `skill.request` follows. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class WantedSkills extends RedisStore {
  constructor(
    private readonly producer: Producer,
    private readonly openMax: number = OPEN_MAX,
  ) {
    super(producer.redis, producer.keys);
  }

  /** Open wishes, for the reconciler. A wish whose job is dead has failed. */
  get work(): DurableWork {
    return {
      name: 'wanted skills',
      outbox: this.keys.wantedSkillOutbox,
      queue: SkillRequest,
      due: async (tenant, id) => {
        const wanted = await this.get(tenant, id);
        if (wanted === null || !OPEN_STATES.has(wanted.state)) return null;
        return { payload: { v: 1, tenant, id } };
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
   * Asks for a skill. The wish is durable when this returns. A repeat returns the first wish, which counts how often it was asked for.
   *
   * @throws EtudeError ALREADY_EXISTS if the request id was used for another wish; FAILED_PRECONDITION if the agent has `openMax` open wishes
   */
  async request({ wish: asked, requestId }: { readonly wish: Wish; readonly requestId: string }): Promise<WantedSkill> {
    const wish = bounded(asked);
    const { tenant, agent } = wish;
    const id = wishIdOf(wish);
    const request = requestId === '' ? '' : this.keys.request(tenant, 'wish', requestId);
    const more = [this.keys.wantedSkills(tenant), this.keys.wantedSkillOutbox, this.keys.openWishes(tenant, agent), request];
    const texts = [id, memberOf(tenant, id), contentDigest(wish), JSON.stringify({ ...wish, id })];
    const limits = [PRIORITY, RETENTION_MS, ROUNDS_MAX, agent, this.openMax];
    const [outcome] = await this.#run<[string]>('requestWish', { tenant, id }, [...texts, ...limits], more);
    if (outcome === 'other') throw requestIdTaken(requestId, 'another wish', {});
    if (outcome === 'full') {
      const message = `Agent "${agent}" has ${this.openMax} requested skills that are not written yet, the most that ETUDE_SKILLS_WISHES_OPEN_MAX allows. Request again when some are written.`;
      throw new EtudeError('FAILED_PRECONDITION', message);
    }
    // An earlier round may have left an ended job with the same id.
    if (outcome === 'created') await this.producer.addForRecord(SkillRequest, { v: 1, tenant, id }, { again: true });
    const stored = await this.get(tenant, id);
    if (stored === null) throw new EtudeError('NOT_FOUND', `the request for "${wish.skill}" was erased while being stored; request again`);
    return stored;
  }

  async get(tenant: string, id: string): Promise<WantedSkill | null> {
    return (await this.load(tenant, id))?.wanted ?? null;
  }

  /** Newest first. @param options.user wishes of this user and wishes without a user; null: only wishes without a user; undefined: all */
  async list(
    tenant: string,
    { limit, after = null, agent = null, user }: { limit: number; after?: string | null; agent?: string | null; user?: string | null },
  ): Promise<{ readonly wishes: readonly WantedSkill[]; readonly nextAfter: string | null }> {
    const index = this.keys.wantedSkills(tenant);
    const wishes: WantedSkill[] = [];
    const rank = after === null ? -1 : await this.ask(this.redis.zrevrank(index, after));
    // The last wish of the previous page has been erased.
    if (rank === null) return { wishes, nextAfter: null };
    for (let start = rank + 1; wishes.length <= limit; start += limit) {
      const ids = await this.ask(this.redis.zrevrange(index, start, start + limit - 1));
      const found = await Promise.all(ids.map((id) => unlessDamaged(this.redis, `wish ${id} of ${tenant}`, () => this.get(tenant, id))));
      const known = found.filter((wanted) => !!wanted);
      const seen = known.filter((wanted) => user === undefined || wanted.user === null || wanted.user === user);
      wishes.push(...seen.filter((wanted) => agent === null || wanted.agent === agent));
      if (ids.length < limit) break;
    }
    const page = wishes.slice(0, limit);
    return { wishes: page, nextAfter: wishes.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  async load(tenant: string, id: string): Promise<StoredWantedSkill | null> {
    const fields = await this.ask(this.redis.hgetall(this.keys.wantedSkill(tenant, id)));
    if (fields['wish'] === undefined) return null;
    const stored = {
      ...(parsedJson(fields['wish']) as object | undefined),
      state: fields['state'],
      reason: fields['reason'] ?? '',
      priority: Number(fields['priority']),
      asked: Number(fields['asked']),
      registered: fields['registered'] || null,
      scripted: fields['scripted'] === '1',
      createdAt: Number(fields['createdAt']),
      updatedAt: Number(fields['updatedAt']),
    };
    const { vouchedBy = null, ...wanted } = parseOr(StoredWish, stored, 'INTERNAL', `wish ${id}`);
    return { round: Number(fields['round']), wanted, vouchedBy, draft: fields['draft'] ?? null };
  }

  /** For the worker: sets the wish's state to `writing`. False if the round is over or the wish is gone: there is nothing to do. */
  async begin(wish: WishRound, reason = ''): Promise<boolean> {
    return (await this.#run<number>('putWish', wish, [wish.round, 'state', 'writing', 'reason', reason])) === 1;
  }

  /** Keeps the draft. Afterwards the wish can't be withdrawn. @returns the first draft that was kept; null if the round is over */
  async keepDraft(wish: WishRound, draft: string): Promise<string | null> {
    return this.#run<string | null>('keepWishDraft', wish, [wish.round, draft]);
  }

  /** Ends a wish. False if the round was over before; then nothing changes. */
  async end(wish: WishRound, end: WishEnd): Promise<boolean> {
    const fields = { ...end, registered: end.registered ?? '', scripted: end.scripted ? 1 : 0 };
    const args = [wish.round, memberOf(wish.tenant, wish.id), WISH_KEPT_MS, ...Object.entries(fields).flat()];
    return (await this.#run<number>('endWish', wish, args, [this.keys.wantedSkillOutbox])) === 1;
  }

  /**
   * Withdraws a wish and removes its job. If a model was already asked, its answer is dropped. A repeat changes nothing.
   *
   * @throws EtudeError NOT_FOUND; FAILED_PRECONDITION if the wish is registered or has failed, or its draft is about to be registered
   */
  async withdraw(tenant: string, id: string, reason: string): Promise<WantedSkill> {
    const args = [memberOf(tenant, id), WISH_KEPT_MS, reason];
    const was = await this.#run<string>('withdrawWish', { tenant, id }, args, [this.keys.wantedSkillOutbox]);
    if (['written', 'registered', 'failed'].includes(was))
      throw new EtudeError(
        'FAILED_PRECONDITION',
        `wantedSkills/${id} is ${was}; only a request whose skill isn't written yet can be withdrawn`,
      );
    // A running job is not removed: its worker finds that the wish was withdrawn.
    await this.ask(this.producer.queue(SkillRequest.name).remove(SkillRequest.jobId({ v: 1, tenant, id })));
    const wanted = await this.get(tenant, id);
    if (wanted === null) throw new EtudeError('NOT_FOUND', `There is no wantedSkills/${id}; list the requested skills.`);
    return wanted;
  }

  /** Reopens a failed wish, before its job is redriven. Returns "waiting", or the state that forbids it; "gone" without a wish. */
  reopen(tenant: string, id: string): Promise<string> {
    return this.#run<string>('reopenWish', { tenant, id }, [memberOf(tenant, id)], [this.keys.wantedSkillOutbox]);
  }

  #run<Answer>(
    script: string,
    { tenant, id }: Pick<WishRound, 'tenant' | 'id'>,
    args: ReadonlyArray<string | number>,
    moreKeys: readonly string[] = [],
  ): Promise<Answer> {
    return this.run<Answer>(script, [this.keys.wantedSkill(tenant, id), ...moreKeys], args);
  }
}

/** Wishes that agents make. No reviewer vouches for their text. */
export const wishesOf = (wanted: WantedSkills): SkillWishes => ({
  async request({ tenant, agent, user }, { name, description, example }) {
    const wish = { tenant, agent, user, skill: name, description, example: example as Wish['example'] };
    return (await wanted.request({ wish, requestId: '' })).id;
  },
});
