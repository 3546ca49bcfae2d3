import { z } from 'zod';
import type { Redis } from 'ioredis';
import { parseOr } from '../jobs/job-end.js';
import type { RedisKeys } from '../redis/keys.js';
import { runScript, whileRedisAnswers } from '../redis/redis.js';

/** A controller without a heartbeat for this long counts as dead. */
const CONTROLLER_TTL_MS = 5_000;
/** How often a controller announces itself. */
export const CONTROLLER_HEARTBEAT_MS = 1_000;

export const ControllerAnnouncement = z.object({
  controllerId: z.string().min(1),
  /** "host:port" of its gRPC server. */
  address: z.string().min(1),
  sessions: z.number().int(),
  sessionsMax: z.number().int(),
});
export type ControllerAnnouncement = z.infer<typeof ControllerAnnouncement>;

/** The live sandbox controllers and their addresses. Uses Redis's clock. @throws EtudeError QUEUE_UNAVAILABLE; every method */
export class ControllerDirectory {
  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
  ) {}

  /** Sends a heartbeat. Call it every `CONTROLLER_HEARTBEAT_MS`. */
  async announce(controller: ControllerAnnouncement): Promise<void> {
    await runScript(this.redis, 'announceController', this.#both, [controller.controllerId, JSON.stringify(controller)]);
  }

  /** Announces a shutdown: from now on the controller counts as dead. */
  async withdraw(controllerId: string): Promise<void> {
    await whileRedisAnswers(this.redis, this.redis.zadd(this.keys.controllersSeen, 'XX', 0, controllerId));
  }

  async live(): Promise<readonly ControllerAnnouncement[]> {
    const found = await runScript<Array<string | null>>(this.redis, 'liveControllers', this.#both, [CONTROLLER_TTL_MS]);
    return found.flatMap((text) => (text ? [parseOr(ControllerAnnouncement, JSON.parse(text), 'INTERNAL', 'a controller')] : []));
  }

  /** Dead controllers, whose sessions another must take over. `left`: it announced its shutdown, so it is surely not alive. */
  async dead(): Promise<ReadonlyArray<{ readonly controllerId: string; readonly left: boolean }>> {
    const flat = await runScript<string[]>(this.redis, 'deadControllers', this.#both, [CONTROLLER_TTL_MS]);
    return flat.flatMap((id, i) => (i % 2 === 0 ? [{ controllerId: id, left: Number(flat[i + 1]) === 0 }] : []));
  }

  /** Removes a dead controller that holds no sessions any more. */
  async forget(controllerId: string): Promise<void> {
    const places = [...this.#both, this.keys.heldSandboxes(controllerId)];
    await runScript(this.redis, 'forgetController', places, [controllerId, CONTROLLER_TTL_MS]);
  }

  get #both(): [string, string] {
    return [this.keys.controllers, this.keys.controllersSeen];
  }
}
