import { EtudeError } from '@etude/contracts/errors';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { MoveInWorld } from '@etude/domain/tools/world-tools';
import { applyMove, type WorldOutcome } from '@etude/domain/world/apply-move';
import { characterName, newWorld, World, type WorldPlan } from '@etude/domain/world/world';
import { z } from 'zod';
import { requestIdTaken } from '../jobs/durable-work.js';
import { parseStored } from '../jobs/job-end.js';
import { newId } from '../redis/keys.js';
import { namesAfter } from '../redis/pages.js';
import { RedisStore, unlessDamaged } from '../redis/redis.js';

const WORLD_KEPT_MS = 30 * 86_400_000;
const OUTCOME_KEPT_MS = 86_400_000;

/** The text of the key `world`. The id distinguishes a world from an earlier one with the same name. */
const Stored = z.object({ id: z.string(), createdAt: z.number(), updatedAt: z.number(), world: World });

interface Outcome {
  readonly digest: string;
  readonly outcome: WorldOutcome;
  readonly at: number;
}

export interface NamedWorld {
  readonly name: string;
  readonly world: World;
  /** ms since 1970. */
  readonly createdAt: number;
  /** Time of the last change, ms since 1970. */
  readonly updatedAt: number;
}

/**
 * The worlds of a tenant. A world is kept until it is removed, or for 30 days after its last change. If the world changed while a move was computed,
 * the move is computed again. @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export class RedisWorlds extends RedisStore {
  /** Makes a world. A repeat with the same plan returns the world as it is. @throws EtudeError ALREADY_EXISTS for another plan */
  async create(tenant: string, name: string, plan: WorldPlan): Promise<NamedWorld> {
    const at = Date.now();
    const text = JSON.stringify({ id: newId('w'), createdAt: at, updatedAt: at, world: newWorld(plan) } satisfies z.infer<typeof Stored>);
    const write = this.redis.multi().set(this.keys.world(tenant, name), text, 'PX', WORLD_KEPT_MS, 'NX');
    await this.ask(write.sadd(this.keys.worlds(tenant), name).exec());
    const found = storedIn(await this.#text(tenant, name));
    const { seed, width, height } = found.world;
    if (contentDigest({ seed, width, height }) === contentDigest(plan)) return { ...found, name };
    throw new EtudeError('ALREADY_EXISTS', `world "${name}" exists with another seed or size; delete it first, or take another name`);
  }

  async get(tenant: string, name: string): Promise<NamedWorld | null> {
    const text = await this.ask(this.redis.get(this.keys.world(tenant, name)));
    return text === null ? null : { ...storedIn(text), name };
  }

  /** Worlds by name, from the first name greater than `after`. */
  async list(tenant: string, { limit, after = '' }: { readonly limit: number; readonly after?: string }): Promise<readonly NamedWorld[]> {
    const names = await this.ask(this.redis.smembers(this.keys.worlds(tenant)));
    const found: NamedWorld[] = [];
    for (const name of namesAfter(names, after, Infinity)) {
      if (found.length === limit) break;
      const world = await unlessDamaged(this.redis, `world ${name} of ${tenant}`, () => this.get(tenant, name));
      if (world) found.push(world);
      if (world === null) await this.run('dropWorldName', [this.keys.world(tenant, name), this.keys.worlds(tenant)], [name]);
    }
    return found;
  }

  /** See `MoveInWorld`. The outcome of a move is kept for a day. A later repeat counts as a new move. */
  readonly move: MoveInWorld = async ({ tenant, agent, user }, name, move, moveId) => {
    for (;;) {
      const text = await this.#text(tenant, name);
      const before = storedIn(text);
      const { world, outcome } = applyMove(before.world, characterName(agent, user), move);
      if (move.tool === 'observe_location' && world === before.world) return outcome;
      const at = Date.now();
      const characters = world.characters.map((one) => ({ since: at, ...one }));
      const next = world === before.world ? text : JSON.stringify({ ...before, updatedAt: at, world: { ...world, characters } });
      const keys = [this.keys.world(tenant, name), this.keys.worldMove(tenant, agent, user ?? '', before.id, moveId)];
      const made: Outcome = { digest: contentDigest(move), outcome, at };
      const args = [text, next, WORLD_KEPT_MS, JSON.stringify(made), OUTCOME_KEPT_MS];
      const written = await this.run<string | null>('moveInWorld', keys, args);
      if (written === null) continue;
      const first = JSON.parse(written) as Outcome;
      if (first.digest === made.digest) return first.outcome;
      throw requestIdTaken(moveId, 'another move', {});
    }
  };

  /** False if there is no such world. */
  async remove(tenant: string, name: string): Promise<boolean> {
    const removed = this.redis.multi().del(this.keys.world(tenant, name)).srem(this.keys.worlds(tenant), name).exec();
    return (await this.ask(removed))?.[0]?.[1] === 1;
  }

  async #text(tenant: string, name: string): Promise<string> {
    const text = await this.ask(this.redis.get(this.keys.world(tenant, name)));
    if (text !== null) return text;
    throw new EtudeError('NOT_FOUND', `there is no world "${name}"; list the worlds to see which exist`);
  }
}

export const storedIn = (text: string): z.infer<typeof Stored> => parseStored(Stored, JSON.parse(text), 'INTERNAL', 'a world');
