import { EtudeError } from '@etude/contracts/errors';
import type { Mover, NamedWorld, Worlds } from '../src/ports/worlds.js';
import { contentDigest } from '../src/skills/content-digest.js';
import { applyMove, type Move, type WorldOutcome } from '../src/world/apply-move.js';
import { characterName, newWorld, type WorldPlan } from '../src/world/world.js';

/** Worlds in this process. */
export class FakeWorlds implements Worlds {
  readonly #worlds = new Map<string, NamedWorld>();
  readonly #outcomes = new Map<string, { readonly digest: string; readonly outcome: WorldOutcome }>();

  async create(tenant: string, name: string, plan: WorldPlan) {
    const key = `${tenant}:${name}`;
    const found = this.#worlds.get(key) ?? { name, world: newWorld(plan), createdAt: 1, updatedAt: 1 };
    const { seed, width, height } = found.world;
    if (contentDigest({ seed, width, height }) !== contentDigest(plan)) throw new EtudeError('ALREADY_EXISTS', 'another plan');
    this.#worlds.set(key, found);
    return found;
  }

  async get(tenant: string, name: string) {
    return this.#worlds.get(`${tenant}:${name}`) ?? null;
  }

  async list(tenant: string, { limit, after = '' }: { limit: number; after?: string }) {
    const own = [...this.#worlds].filter(([key, { name }]) => key === `${tenant}:${name}` && name > after);
    return own
      .map(([, found]) => found)
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .slice(0, limit);
  }

  async move({ tenant, agent, user }: Mover, name: string, move: Move, moveId: string) {
    const found = this.#worlds.get(`${tenant}:${name}`);
    if (found === undefined) throw new EtudeError('NOT_FOUND', `there is no world "${name}"`);
    const who = characterName(agent, user);
    const { world, outcome } = applyMove(found.world, who, move);
    if (move.tool === 'observe_location' && world === found.world) return outcome;
    const key = [tenant, name, who, moveId].join(':');
    const digest = contentDigest(move);
    const known = this.#outcomes.get(key);
    if (known !== undefined && known.digest !== digest) throw new EtudeError('ALREADY_EXISTS', 'another move');
    if (known !== undefined) return known.outcome;
    this.#outcomes.set(key, { digest, outcome });
    this.#worlds.set(`${tenant}:${name}`, { ...found, world });
    return outcome;
  }

  async remove(tenant: string, name: string) {
    for (const key of this.#outcomes.keys()) if (key.startsWith(`${tenant}:${name}:`)) this.#outcomes.delete(key);
    return this.#worlds.delete(`${tenant}:${name}`);
  }
}
