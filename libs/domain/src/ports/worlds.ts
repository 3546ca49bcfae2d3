import type { Move, WorldOutcome } from '../world/apply-move.js';
import type { World, WorldPlan } from '../world/world.js';

export interface NamedWorld {
  readonly name: string;
  readonly world: World;
  /** ms since 1970. */
  readonly createdAt: number;
  /** Time of the last change, ms since 1970. */
  readonly updatedAt: number;
}

export interface Mover {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
}

/**
 * The worlds of a tenant. A world is kept until it is removed, or for 30 days after its last change. Not in it: who may make or remove
 * one.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; every method
 */
export interface Worlds {
  /** Makes a world; the same plan again gives the world as it is. @throws EtudeError ALREADY_EXISTS if another plan has the name */
  create(tenant: string, name: string, plan: WorldPlan): Promise<NamedWorld>;
  get(tenant: string, name: string): Promise<NamedWorld | null>;
  /** Worlds by name, from the first name greater than `after`. */
  list(tenant: string, page: { readonly limit: number; readonly after?: string }): Promise<readonly NamedWorld[]>;
  /**
   * Applies a move. Moves of a world have one order. A repeat with the same id, within a day, changes nothing and has the same outcome;
   * an observation is made anew.
   *
   * @param moveId unique per mover and world
   * @throws EtudeError NOT_FOUND if there is no such world; ALREADY_EXISTS if the id was used for another move
   */
  move(mover: Mover, name: string, move: Move, moveId: string): Promise<WorldOutcome>;
  /** False if there is no such world. */
  remove(tenant: string, name: string): Promise<boolean>;
}
