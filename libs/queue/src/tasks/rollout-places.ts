import { RolloutRun } from '@etude/contracts/queues';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import type { Admission } from '../jobs/consumer.js';
import { channelsOf } from '../redis/channels.js';
import type { RedisKeys } from '../redis/keys.js';

/** BullMQ's score of a job is its priority times this, plus a counter. */
const PRIORITY_STEP = 2 ** 32;
const PLACES_PER_EXTRA = 8;

/**
 * The places of one worker for running rollouts. When all are taken, a few extra places remain for tenants without a running task. The job
 * of any other tenant waits in an extra place. It returns to the queue when a newcomer (a tenant without tasks) submits a task, which comes
 * first.
 */
export class RolloutPlaces {
  /** Jobs to fetch at once. */
  readonly jobsMax: number;
  #taken = 0;
  readonly #held = new Set<(mayRun: boolean) => void>();

  private constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly count: number,
  ) {
    this.jobsMax = count + Math.ceil(count / PLACES_PER_EXTRA);
  }

  /** Resolves once newcomers are noticed. The subscription ends with the connection. */
  static async open(redis: Redis, keys: RedisKeys, count: number): Promise<RolloutPlaces> {
    const places = new RolloutPlaces(redis, keys, count);
    await channelsOf(redis).listen(keys.line, () => places.#onNewcomer()).ready;
    return places;
  }

  /** Takes a place for a job. @returns a function to call at the job's end; null: the job returns to the queue @throws the signal's reason */
  readonly admit: Admission<z.infer<typeof RolloutRun.payload>> = async ({ tenant }, { priority }, signal) => {
    if (this.#taken < this.count || (await this.#hasNoneRunning(tenant))) this.#taken += 1;
    else if (!(await this.#hold(priority, signal))) return null;
    return () => this.#leave();
  };

  async #hasNoneRunning(tenant: string): Promise<boolean> {
    const [open, waiting] = await Promise.all([
      this.redis.scard(this.keys.openTasks(tenant)),
      this.redis.zcard(this.keys.waitingTasks(tenant)),
    ]);
    return open <= waiting;
  }

  /** Holds a job until it gets a place or another job has to come first. @returns whether it got a place */
  async #hold(priority: number, signal: AbortSignal): Promise<boolean> {
    if (this.#taken < this.count) {
      this.#taken += 1;
      return true;
    }
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const fail = (error: unknown) => this.#held.delete(resolve) && reject(error);
    const abort = () => fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#held.add(resolve);
    // A newcomer's job may have been added since this job was fetched.
    const isPreceded = this.#first().then((first) => first < priority);
    void isPreceded.then((itIs) => itIs && this.#held.delete(resolve) && resolve(false), fail);
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  /** BullMQ's priority of the first waiting job. */
  async #first(): Promise<number> {
    const [, score = Infinity] = await this.redis.zrange(`${this.keys.queues}:${RolloutRun.name}:prioritized`, '0', '0', 'WITHSCORES');
    return Math.floor(Number(score) / PRIORITY_STEP);
  }

  #leave(): void {
    this.#taken -= 1;
    const [first] = this.#held;
    if (first === undefined || this.#taken >= this.count) return;
    this.#taken += 1;
    this.#held.delete(first);
    first(true);
  }

  #onNewcomer(): void {
    for (const giveBack of this.#held) giveBack(false);
    this.#held.clear();
  }
}
