import { z } from 'zod';
import { type Cell, cellsAround, depositAt, type Deposit, distance, type Land, TERRAINS, terrainAt } from './land.js';

export const STAMINA_MAX = 10_000;

/** An agent in a world. */
export const Character = z.object({
  /** "agent", or "agent/user" of an agent that works for a user. */
  name: z.string(),
  x: z.number().int(),
  y: z.number().int(),
  /** Ten-thousandths, 0 to 10,000: whole numbers neither drift nor get negative. */
  stamina: z.number().int().min(0).max(STAMINA_MAX),
  inventory: z.record(z.string(), z.number().int()),
  /** Time of its first move, ms since 1970. The store of the world sets it. */
  since: z.number().optional(),
});
export type Character = Readonly<z.infer<typeof Character>>;

const Size = z.number().int().min(8).max(128);
export const WorldPlan = z.strictObject({
  seed: z.string().min(1).max(64),
  width: Size.default(32),
  height: Size.default(32),
});
export type WorldPlan = Readonly<z.infer<typeof WorldPlan>>;

/** The whole state of a world, as JSON. */
export const World = WorldPlan.extend({
  /** Number of moves that changed the world. */
  tick: z.number().int().min(0),
  /** Units taken, by cell "x,y". */
  taken: z.record(z.string(), z.number().int()),
  characters: z.array(Character),
});
export type World = Readonly<z.infer<typeof World>>;

export const newWorld = (plan: WorldPlan): World => ({ ...plan, tick: 0, taken: {}, characters: [] });

/** Neither agents nor users hold a "/". */
export const characterName = (agent: string, user: string | null): string => (user === null ? agent : `${agent}/${user}`);

export const keyOf = ({ x, y }: Cell): string => `${x},${y}`;

/** What is left to gather on a cell; null: nothing. */
export function leftAt(world: World, cell: Cell): Deposit | null {
  const deposit = depositAt(world, cell);
  const amount = (deposit?.amount ?? 0) - (world.taken[keyOf(cell)] ?? 0);
  return deposit === null || amount <= 0 ? null : { ...deposit, amount };
}

/** What is left to gather within a distance, nearest first. */
export const leftAround = (world: World, centre: Cell, radius: number): readonly Deposit[] =>
  cellsAround(world, centre, radius)
    .flatMap((cell) => leftAt(world, cell) ?? [])
    .toSorted((a, b) => distance(centre, a) - distance(centre, b));

/** Rows of characters: the terrain, and on top of it each marker. */
export function picture(land: Land, markers: ReadonlyMap<string, string> = new Map()): readonly string[] {
  return Array.from({ length: land.height }, (_, y) =>
    Array.from({ length: land.width }, (__, x) => markers.get(keyOf({ x, y })) ?? TERRAINS[terrainAt(land, { x, y })]).join(''),
  );
}
