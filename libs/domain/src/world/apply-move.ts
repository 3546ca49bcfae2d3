import {
  type Cell,
  type Character,
  climateAt,
  distance,
  homeOf,
  inhabitantsOf,
  isInside,
  keyOf,
  leftAround,
  leftAt,
  mayStand,
  RESOURCES,
  STAMINA_MAX,
  terrainAt,
  type World,
} from './world.js';

export const ACTIONS = ['talk', 'rest'] as const;

/** A move. `tool` is the name of the agent's tool that makes it. */
export type Move =
  | { readonly tool: 'observe_location'; readonly radius: number }
  | { readonly tool: 'move_to'; readonly x: number; readonly y: number }
  | { readonly tool: 'gather_resource'; readonly resource?: string | undefined }
  | {
      readonly tool: 'interact_with_agent';
      readonly name: string;
      readonly action: (typeof ACTIONS)[number];
      readonly message: string;
    };

/** Ten-thousandths of stamina: the cost of one cell of distance, the cost of one gathered unit, and the gain of resting alone. */
const [PER_CELL, PER_UNIT, PER_REST] = [100, 200, 1_000];
/** Agents see this many cells far. Two characters that meet must be at most `NEAR` cells apart. */
export const SEEN = 10;
const NEAR = 2;

export type WorldOutcome =
  | { readonly success: true; readonly result: Readonly<Record<string, unknown>> }
  | { readonly success: false; readonly error: string };

interface Step {
  readonly outcome: WorldOutcome;
  /** The character after the move. Absent if the move didn't change it. */
  readonly me?: Character;
  readonly taken?: Cell;
}

/** Applies one move of a character. A new character first enters the world, at a cell derived from its name. Each change increments the tick. */
export function applyMove(world: World, name: string, move: Move): { readonly world: World; readonly outcome: WorldOutcome } {
  const known = world.characters.find((one) => one.name === name);
  const before = known ?? { name, ...homeOf(world, name), stamina: STAMINA_MAX, inventory: {} };
  const { outcome, me, taken } = stepOf(world, before, move);
  if (known !== undefined && me === undefined) return { world, outcome };
  const key = taken && keyOf(taken);
  return {
    outcome,
    world: {
      ...world,
      tick: world.tick + 1,
      characters: [...world.characters.filter((one) => one.name !== name), me ?? before],
      taken: key === undefined ? world.taken : { ...world.taken, [key]: (world.taken[key] ?? 0) + 1 },
    },
  };
}

function stepOf(world: World, me: Character, move: Move): Step {
  switch (move.tool) {
    case 'observe_location':
      return observe(world, me, move.radius);
    case 'move_to':
      return moveTo(world, me, move);
    case 'gather_resource':
      return gather(world, me, move.resource);
    default:
      return interact(world, me, move);
  }
}

const failed = (error: string): Step => ({ outcome: { success: false, error } });
const share = (stamina: number) => stamina / STAMINA_MAX;
const TIRED = 'Rest with an innkeeper, or alone: interact_with_agent with name "self" and action "rest".';

const everybodyIn = (world: World) => [...inhabitantsOf(world), ...world.characters.map((one) => ({ ...one, type: 'agent' }))];

function observe(world: World, me: Character, radius: number): Step {
  const near = everybodyIn(world).map((one) => ({ name: one.name, type: one.type, distance: Math.round(distance(me, one) * 100) / 100 }));
  const result = {
    position: { x: me.x, y: me.y },
    terrain: terrainAt(world, me),
    climate: climateAt(world, me),
    resources: leftAround(world, me, radius),
    nearby_agents: near
      .filter((one) => one.name !== me.name && one.distance <= radius)
      .toSorted((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1)),
    stamina: share(me.stamina),
    inventory: me.inventory,
  };
  return { outcome: { success: true, result } };
}

function moveTo(world: World, me: Character, { x, y }: Cell): Step {
  if (!isInside(world, { x, y }))
    return failed(`(${x}, ${y}) is outside of the world. x goes from 0 to ${world.width - 1}, y from 0 to ${world.height - 1}.`);
  if (!mayStand(world, { x, y })) return failed(`(${x}, ${y}) is ${terrainAt(world, { x, y })}. Nobody can stand there.`);
  // Rounded up, so that no move is free. The square root is exact if the distance is a whole number.
  const used = Math.ceil(Math.sqrt(PER_CELL ** 2 * ((x - me.x) ** 2 + (y - me.y) ** 2)));
  if (used > me.stamina) return failed(`Insufficient stamina: this move takes ${share(used)}, and ${share(me.stamina)} is left. ${TIRED}`);
  const stamina = me.stamina - used;
  const result = { new_position: { x, y }, stamina_used: share(used), stamina: share(stamina), terrain: terrainAt(world, { x, y }) };
  return { outcome: { success: true, result }, me: { ...me, x, y, stamina } };
}

function gather(world: World, me: Character, wanted: string | undefined): Step {
  const found = leftAt(world, me);
  if (found === null) return failed('There is nothing to gather here. observe_location lists cells with resources.');
  const { resource, amount } = found;
  if (wanted !== undefined && wanted !== resource) return failed(`There is no ${wanted} here, but ${resource}.`);
  if (me.stamina < PER_UNIT)
    return failed(`Insufficient stamina: ${share(PER_UNIT)} is needed, and ${share(me.stamina)} is left. ${TIRED}`);
  const stamina = me.stamina - PER_UNIT;
  const inventory = { ...me.inventory, [resource]: (me.inventory[resource] ?? 0) + 1 };
  const result = { resource, left: amount - 1, stamina_used: share(PER_UNIT), stamina: share(stamina), inventory };
  return { outcome: { success: true, result }, me: { ...me, stamina, inventory }, taken: me };
}

function interact(world: World, me: Character, { name, action, message }: Extract<Move, { tool: 'interact_with_agent' }>): Step {
  const other = name === 'self' ? { ...me, type: 'self' } : everybodyIn(world).find((one) => one.name === name && one.name !== me.name);
  if (other === undefined || distance(me, other) > NEAR)
    return failed('Nobody of this name is within 2 cells. observe_location lists who is near; "self" is you.');
  const { type } = other;
  if (action === 'rest' && type !== 'innkeeper' && type !== 'self') return failed(`Rest isn't possible with the type ${type}. ${TIRED}`);
  const rested = Math.min(STAMINA_MAX, me.stamina + (type === 'self' ? PER_REST : STAMINA_MAX));
  const after = action === 'rest' ? { ...me, stamina: rested } : me;
  const reply =
    action === 'rest'
      ? 'You have rested.'
      : type === 'guide'
        ? guideTo(world, other, message)
        : 'It has heard you, and has nothing to say.';
  return { outcome: { success: true, result: { reply, stamina: share(after.stamina) } }, ...(action === 'rest' ? { me: after } : {}) };
}

function guideTo(world: World, { x, y }: Cell, message: string): string {
  const wanted = RESOURCES.find((one) => message.includes(one)) ?? 'berries';
  const nearest = leftAround(world, { x, y }, 2 * SEEN).find(({ resource }) => resource === wanted);
  return nearest === undefined ? `I know of no ${wanted} near.` : `The nearest ${wanted} is at (${nearest.x}, ${nearest.y}).`;
}
