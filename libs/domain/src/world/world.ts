import { z } from 'zod';

/** The land of a world. All of it follows from the seed and the size, so nothing of it is stored. */
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

/** What may lie on a cell of a terrain, with its probability. */
const FOUND: Readonly<Record<Terrain, Readonly<Record<string, number>>>> = {
  plain: { berries: 0.08, herbs: 0.1 },
  forest: { wood: 0.35, berries: 0.2 },
  hill: { stone: 0.3, ore: 0.12 },
  mountain: {},
  water: {},
};
export const RESOURCES: readonly string[] = Object.values(FOUND).flatMap(Object.keys);

/** A number from 0 to 1 for these words: FNV-1a and a final mix. It uses whole numbers only, so every machine gets the same. */
function chance(...words: ReadonlyArray<string | number>): number {
  let hash = 0x811c9dc5;
  for (const char of words.join(',')) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/** Cells between two points of the noise. */
const SPAN = 6;

/** A value between two, smoothly. @param t 0 gives `a`, 1 gives `b` */
const mix = (a: number, b: number, t: number) => a + (b - a) * t * t * (3 - 2 * t);

/** Smooth noise from 0 to 1: near cells have near values. */
function noise({ seed }: Land, layer: string, { x, y }: Cell): number {
  const [left, top] = [Math.floor(x / SPAN), Math.floor(y / SPAN)];
  const row = (dy: number) => mix(chance(seed, layer, left, top + dy), chance(seed, layer, left + 1, top + dy), x / SPAN - left);
  return mix(row(0), row(1), y / SPAN - top);
}

/** The centre is always a plain, so that every world has a cell to stand on. */
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
  /** Units that are left. */
  readonly amount: number;
}

/** The resource that a cell had at first, 1 to 3 units; null: none. */
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

/** Euclidean distance, in cells. */
export const distance = (a: Cell, b: Cell): number => Math.sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2);

/** The cells of the land within a distance, row by row. */
export function cellsAround(land: Land, centre: Cell, radius: number): readonly Cell[] {
  const around = Array.from({ length: 2 * radius + 1 }, (_, i) => i - radius);
  const cells = around.flatMap((dy) => around.map((dx) => ({ x: centre.x + dx, y: centre.y + dy })));
  return cells.filter((cell) => isInside(land, cell) && distance(cell, centre) <= radius);
}

/** A cell to stand on, for a name: always the same one. */
export function homeOf(land: Land, name: string): Cell {
  const count = land.width * land.height;
  for (let i = Math.floor(chance(land.seed, 'home', name) * count); ; i = (i + 1) % count) {
    const cell = { x: i % land.width, y: Math.floor(i / land.width) };
    if (mayStand(land, cell)) return cell;
  }
}

const TYPES = ['innkeeper', 'guide'] as const;
const CELLS_PER_INHABITANT = 128;

/** Those who live in a world and never move, by names such as "@guide-3". No agent's name starts with "@". */
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

/** The rest of a cell's resource; null: nothing is left. */
export function leftAt(world: World, cell: Cell): Deposit | null {
  const deposit = depositAt(world, cell);
  const amount = (deposit?.amount ?? 0) - (world.taken[keyOf(cell)] ?? 0);
  return deposit === null || amount <= 0 ? null : { ...deposit, amount };
}

/** The remaining resources within a distance, nearest first. */
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
