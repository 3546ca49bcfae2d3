import { z } from 'zod';

/** The land of a world. Terrain, climate and resources are computed from seed and size, so they are not stored. */
interface Land {
  readonly seed: string;
  readonly width: number;
  readonly height: number;
}

/** A cell. x counts from the left, y from the top, both from 0. */
export interface Cell {
  readonly x: number;
  readonly y: number;
}

/** Terrains with their characters on a map. Nobody can stand on water or on a mountain. */
const TERRAINS = { plain: '.', forest: 'T', hill: 'n', mountain: '^', water: '~' } as const;
type Terrain = keyof typeof TERRAINS;

/** The resources that a cell of a terrain may have, each with its probability. */
const FOUND: Readonly<Record<Terrain, Readonly<Record<string, number>>>> = {
  plain: { berries: 0.08, herbs: 0.1 },
  forest: { wood: 0.35, berries: 0.2 },
  hill: { stone: 0.3, ore: 0.12 },
  mountain: {},
  water: {},
};
export const RESOURCES: readonly string[] = Object.values(FOUND).flatMap(Object.keys);

/** A pseudo-random number from 0 to 1, made from these words by FNV-1a. Only whole numbers are used, so every machine gets the same result. */
function chance(...words: ReadonlyArray<string | number>): number {
  let hash = 0x811c9dc5;
  for (const char of words.join(',')) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** Distance in cells between two points of the noise. */
const SPAN = 6;

/** Interpolates smoothly between two values. @param t 0 gives `a`, 1 gives `b` */
const mix = (a: number, b: number, t: number) => a + (b - a) * t * t * (3 - 2 * t);

/** Smooth noise from 0 to 1. Neighbouring cells have similar values. */
function noise({ seed }: Land, layer: string, { x, y }: Cell): number {
  const [left, top] = [Math.floor(x / SPAN), Math.floor(y / SPAN)];
  const row = (dy: number) => mix(chance(seed, layer, left, top + dy), chance(seed, layer, left + 1, top + dy), x / SPAN - left);
  return mix(row(0), row(1), y / SPAN - top);
}

/** The terrain of a cell. The centre is always a plain, so that every world has a cell to stand on. */
export function terrainAt(land: Land, cell: Cell): Terrain {
  if (cell.x === land.width >> 1 && cell.y === land.height >> 1) return 'plain';
  const height = noise(land, 'height', cell);
  if (height < 0.28) return 'water';
  if (height > 0.78) return 'mountain';
  if (height > 0.64) return 'hill';
  return noise(land, 'moisture', cell) > 0.5 ? 'forest' : 'plain';
}

export function climateAt(land: Land, cell: Cell): string {
  const warmth = (noise(land, 'warmth', cell) + cell.y / land.height) / 2;
  const kind = warmth < 0.35 ? 'cold' : warmth > 0.65 ? 'hot' : 'temperate';
  return `${kind} and ${noise(land, 'moisture', cell) > 0.5 ? 'wet' : 'dry'}`;
}

interface Deposit extends Cell {
  readonly resource: string;
  readonly amount: number;
}

/** The resource that a cell had when the world began, with 1 to 3 units. null if it had none. */
export function depositAt(land: Land, { x, y }: Cell): Deposit | null {
  let roll = chance(land.seed, 'resource', x, y);
  for (const [resource, share] of Object.entries(FOUND[terrainAt(land, { x, y })])) {
    if (roll < share) return { resource, amount: 1 + Math.floor(chance(land.seed, 'amount', x, y) * 3), x, y };
    roll -= share;
  }
  return null;
}

export const isInside = ({ width, height }: Land, { x, y }: Cell): boolean => x >= 0 && y >= 0 && x < width && y < height;

export const mayStand = (land: Land, cell: Cell): boolean => !['water', 'mountain'].includes(terrainAt(land, cell));

export const distance = (a: Cell, b: Cell): number => Math.sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2);

export function cellsAround(land: Land, centre: Cell, radius: number): readonly Cell[] {
  const around = Array.from({ length: 2 * radius + 1 }, (_, i) => i - radius);
  const cells = around.flatMap((dy) => around.map((dx) => ({ x: centre.x + dx, y: centre.y + dy })));
  return cells.filter((cell) => isInside(land, cell) && distance(cell, centre) <= radius);
}

export function homeOf(land: Land, name: string): Cell {
  const count = land.width * land.height;
  for (let i = Math.floor(chance(land.seed, 'home', name) * count); ; i = (i + 1) % count) {
    const cell = { x: i % land.width, y: Math.floor(i / land.width) };
    if (mayStand(land, cell)) return cell;
  }
}

const TYPES = ['innkeeper', 'guide'] as const;
const CELLS_PER_INHABITANT = 128;

/** The innkeepers and guides of a world, who never move. Their names, such as "@guide-3", start with "@", which no agent's name does. */
export function inhabitantsOf(land: Land) {
  const count = Math.max(TYPES.length, Math.floor((land.width * land.height) / CELLS_PER_INHABITANT));
  return Array.from({ length: count }, (_, i) => {
    const type = TYPES[i % TYPES.length] ?? 'guide';
    const name = `@${type}-${Math.floor(i / TYPES.length) + 1}`;
    return { name, type, ...homeOf(land, name) };
  });
}

export const STAMINA_MAX = 10_000;

export const Character = z.object({
  /** The agent's name, or "agent/user" if the agent works for a user. */
  name: z.string(),
  x: z.number().int(),
  y: z.number().int(),
  /** Stamina in ten-thousandths, because sums of whole numbers have no rounding errors. */
  stamina: z.number().int().min(0).max(STAMINA_MAX),
  inventory: z.record(z.string(), z.number().int()),
  /** Time of the character's first move, in ms since 1970. The store of worlds sets it. */
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

export const World = WorldPlan.extend({
  tick: z.number().int().min(0),
  /** The number of units taken from each cell "x,y". */
  taken: z.record(z.string(), z.number().int()),
  characters: z.array(Character),
});
export type World = Readonly<z.infer<typeof World>>;

export const newWorld = (plan: WorldPlan): World => ({ ...plan, tick: 0, taken: {}, characters: [] });

/** The name of an agent's character. It is unambiguous, because names of agents and users hold no "/". */
export const characterName = (agent: string, user: string | null): string => (user === null ? agent : `${agent}/${user}`);

export const keyOf = ({ x, y }: Cell): string => `${x},${y}`;

export function leftAt(world: World, cell: Cell): Deposit | null {
  const deposit = depositAt(world, cell);
  const amount = (deposit?.amount ?? 0) - (world.taken[keyOf(cell)] ?? 0);
  return deposit === null || amount <= 0 ? null : { ...deposit, amount };
}

export const leftAround = (world: World, centre: Cell, radius: number): readonly Deposit[] =>
  cellsAround(world, centre, radius)
    .flatMap((cell) => leftAt(world, cell) ?? [])
    .toSorted((a, b) => distance(centre, a) - distance(centre, b));

/** The map as rows of characters. A marker is shown in place of its cell's terrain. */
export function picture(land: Land, markers: ReadonlyMap<string, string> = new Map()): readonly string[] {
  return Array.from({ length: land.height }, (_, y) =>
    Array.from({ length: land.width }, (__, x) => markers.get(keyOf({ x, y })) ?? TERRAINS[terrainAt(land, { x, y })]).join(''),
  );
}
