import { z } from 'zod';
import type { Redis } from 'ioredis';
import { parseOr } from '../jobs/job-end.js';
import type { RedisKeys } from '../redis/keys.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';

/** Without a heartbeat for this long a controller counts as dead. */
const CONTROLLER_TTL_MS = 5_000;
/** How often a controller says that it lives. */
export const CONTROLLER_HEARTBEAT_MS = 1_000;
/** Age of the list that `live` may answer with unless told otherwise. */
const CACHE_MS = 500;

/** What a sandbox controller says of itself. */
export const ControllerAnnouncement = z.object({
  controllerId: z.string().min(1),
  /** "host:port" of its gRPC server. */
  address: z.string().min(1),
  /** Open ones that it holds or is opening. */
  sessions: z.number().int(),
  sessionsMax: z.number().int(),
});
export type ControllerAnnouncement = z.infer<typeof ControllerAnnouncement>;

/** Which sandbox controllers live, and where. Times are Redis's own. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class ControllerDirectory {
  readonly #ttlMs: number;
  #cached: { readonly at: number; readonly list: Promise<readonly ControllerAnnouncement[]> } | null = null;

  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    { ttlMs = CONTROLLER_TTL_MS }: { readonly ttlMs?: number } = {},
  ) {
    this.#ttlMs = ttlMs;
  }

  /** A heartbeat: once per `CONTROLLER_HEARTBEAT_MS`. */
  async announce(controller: ControllerAnnouncement): Promise<void> {
    await runScript(this.redis, 'announceController', this.#both, [controller.controllerId, JSON.stringify(controller)]);
  }

  /** Good-bye: from now on it counts as dead. */
  async withdraw(controllerId: string): Promise<void> {
    await whileRedisAnswers(this.redis, this.redis.zadd(this.keys.controllersSeen, 'XX', 0, controllerId));
  }

  /** @param maxAgeMs a list that was read at most this long ago will do; 0 asks Redis */
  live(maxAgeMs = CACHE_MS): Promise<readonly ControllerAnnouncement[]> {
    const now = performance.now();
    if (this.#cached && now - this.#cached.at < maxAgeMs) return this.#cached.list;
    const cached = { at: now, list: this.#read() };
    this.#cached = cached;
    cached.list.catch(() => {
      if (this.#cached === cached) this.#cached = null;
    });
    return cached.list;
  }

  /** The live controller of this id; null where it is dead or was never there. */
  async find(controllerId: string, maxAgeMs?: number): Promise<ControllerAnnouncement | null> {
    return (await this.live(maxAgeMs)).find((one) => one.controllerId === controllerId) ?? null;
  }

  /** Those whose sessions somebody else must take care of. `left`: it said good-bye; a clock that jumps makes nobody look so. */
  async dead(): Promise<ReadonlyArray<{ readonly controllerId: string; readonly left: boolean }>> {
    const flat = await runScript<string[]>(this.redis, 'deadControllers', this.#both, [this.#ttlMs]);
    return flat.flatMap((id, i) => (i % 2 === 0 ? [{ controllerId: id, left: Number(flat[i + 1]) === 0 }] : []));
  }

  /** Drops a dead controller that holds no session any more. */
  async forget(controllerId: string): Promise<void> {
    await runScript(this.redis, 'forgetController', [...this.#both, this.keys.heldSandboxes(controllerId)], [controllerId, this.#ttlMs]);
  }

  get #both(): [string, string] {
    return [this.keys.controllers, this.keys.controllersSeen];
  }

  async #read(): Promise<readonly ControllerAnnouncement[]> {
    const found = await runScript<Array<string | null>>(this.redis, 'liveControllers', this.#both, [this.#ttlMs]);
    return found.flatMap((text) => (text ? [parseOr(ControllerAnnouncement, JSON.parse(text), 'INTERNAL', 'a controller')] : []));
  }
}
