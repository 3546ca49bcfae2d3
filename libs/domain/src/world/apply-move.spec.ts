import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACTIONS, applyMove, type Move } from './apply-move.js';
import {
  type Cell,
  cellsAround,
  characterName,
  climateAt,
  depositAt,
  homeOf,
  inhabitantsOf,
  keyOf,
  leftAt,
  mayStand,
  newWorld,
  picture,
  STAMINA_MAX,
  terrainAt,
  World,
} from './world.js';

const PLAN = { seed: 'moor', width: 32, height: 32 };
const EMPTY = newWorld(PLAN);
const LOOK = { tool: 'observe_location', radius: 10 } as const;
const to = (x: number, y: number): Move => ({ tool: 'move_to', x, y });
const meet = (name: string, action: (typeof ACTIONS)[number] = 'talk', message = ''): Move => ({
  tool: 'interact_with_agent',
  name,
  action,
  message,
});
const REST = meet('self', 'rest');

const name = fc.constantFrom('ann', 'constructor', 'ann/bob');
const others = ['self', 'ann', '@innkeeper-1', '@guide-1'];
const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ tool: fc.constant('move_to' as const), x: fc.integer({ min: -2, max: 33 }), y: fc.integer({ min: -2, max: 33 }) }),
  fc.record({ tool: fc.constant('observe_location' as const), radius: fc.integer({ min: 0, max: 10 }) }),
  fc.record({ tool: fc.constant('gather_resource' as const), resource: fc.constantFrom(undefined, 'wood', 'ore') }),
  fc.record({
    tool: fc.constant('interact_with_agent' as const),
    name: fc.constantFrom(...others),
    action: fc.constantFrom(...ACTIONS),
    message: fc.constantFrom('', 'ore?'),
  }),
);
const play = (moves: ReadonlyArray<readonly [string, Move]>, world = EMPTY) =>
  moves.reduce((before, [who, one]) => applyMove(before, who, one).world, world);
const moves = fc.array(fc.tuple(name, move), { maxLength: 60 });

/** Moves the world's only character from its home to any cell, after enough rests. */
function travel(world: World, who: string, cell: { x: number; y: number }): World {
  const rested = play(
    Array.from({ length: 20 }, () => [who, REST] as const),
    world,
  );
  const there = applyMove(rested, who, to(cell.x, cell.y));
  expect(there.outcome).toMatchObject({ success: true });
  return there.world;
}

describe('a world', () => {
  it('has the same land for the same seed, and other land for another', () => {
    expect(picture(newWorld({ ...PLAN }))).toEqual(picture(EMPTY));
    expect(picture(newWorld({ ...PLAN, seed: 'fen' }))).not.toEqual(picture(EMPTY));
    expect([inhabitantsOf({ ...PLAN }).length, inhabitantsOf(PLAN).every((one) => mayStand(PLAN, one))]).toEqual([8, true]);
    expect([terrainAt(PLAN, { x: 3, y: 4 }), climateAt(PLAN, { x: 3, y: 4 })]).toEqual(['forest', 'cold and wet']);
  });

  it.each(['a', 'b', 'c'])('has every terrain and every resource with the seed %s', (seed) => {
    const land = { seed, width: 64, height: 64 };
    expect(new Set(picture(land).join(''))).toEqual(new Set('.Tn^~'));
    const found = cellsAround(land, { x: 32, y: 32 }, 30).flatMap((cell) => depositAt(land, cell)?.resource ?? []);
    expect(new Set(found)).toEqual(new Set(['wood', 'berries', 'herbs', 'stone', 'ore']));
  });

  it('never has negative stamina, drifting stamina or more taken than there was', () => {
    fc.assert(
      fc.property(moves, (played) => {
        const world = play(played);
        for (const { stamina, inventory, ...cell } of world.characters) {
          expect(Number.isInteger(stamina) && stamina >= 0 && stamina <= STAMINA_MAX && mayStand(world, cell)).toBe(true);
          expect(Object.values(inventory).every((count) => count > 0)).toBe(true);
        }
        for (const [key, count] of Object.entries(world.taken)) {
          const [x = 0, y = 0] = key.split(',').map(Number);
          expect(count).toBeLessThanOrEqual(depositAt(world, { x, y })?.amount ?? 0);
        }
      }),
    );
  });

  it('continues after being stored as if it had not been', () => {
    fc.assert(
      fc.property(moves, moves, (before, after) => {
        const world = play(before);
        expect(play(after, World.parse(JSON.parse(JSON.stringify(world))))).toEqual(play(after, world));
      }),
    );
  });

  it('looks the same to every agent', () => {
    type Seen = { position: Cell; resources: readonly Cell[] };
    fc.assert(
      fc.property(moves, (played) => {
        const world = play(played);
        const seen = new Map<string, string>();
        for (const who of ['ann', 'constructor', 'ann/bob', 'new']) {
          const { outcome } = applyMove(world, who, LOOK);
          if (!outcome.success) throw new Error(outcome.error);
          const { resources, ...me } = outcome.result as unknown as Seen;
          for (const cell of cellsAround(world, me.position, 10)) {
            const left = resources.find(({ x, y }) => x === cell.x && y === cell.y) ?? null;
            expect(left).toEqual(leftAt(world, cell));
            expect(seen.get(keyOf(cell)) ?? JSON.stringify(left)).toBe(JSON.stringify(left));
            seen.set(keyOf(cell), JSON.stringify(left));
          }
        }
      }),
      { numRuns: 20 },
    );
  });
});

const outcomeOf = (one: Move, world: World = EMPTY) => applyMove(world, 'ann', one).outcome;
const of = (type: string) => homeOf(PLAN, `@${type}-1`);

describe('a move', () => {
  const home = homeOf(PLAN, 'ann');

  it('takes 0.01 of stamina per cell of distance, rounded up to 0.0001', () => {
    const guide = of('guide');
    const cells = Math.hypot(guide.x - home.x, guide.y - home.y);
    expect(outcomeOf(to(guide.x, guide.y))).toEqual({
      success: true,
      result: {
        new_position: { x: guide.x, y: guide.y },
        stamina_used: Math.ceil(cells * 100) / 10_000,
        stamina: (10_000 - Math.ceil(cells * 100)) / 10_000,
        terrain: terrainAt(PLAN, guide),
      },
    });
  });

  it('fails where nobody can stand, outside of the world, and without stamina', () => {
    const water = cellsAround(PLAN, home, 20).find((cell) => terrainAt(PLAN, cell) === 'water') ?? home;
    expect(outcomeOf(to(water.x, water.y))).toMatchObject({ success: false, error: expect.stringContaining('is water') });
    expect(outcomeOf(to(32, 0))).toMatchObject({
      success: false,
      error: expect.stringContaining('outside of the world. x goes from 0 to 31'),
    });
    const tired = World.parse({ ...EMPTY, characters: [{ name: 'ann', ...home, stamina: 99, inventory: {} }] });
    const next = cellsAround(PLAN, home, 1).find((cell) => (cell.x !== home.x || cell.y !== home.y) && mayStand(PLAN, cell)) ?? home;
    const failure = applyMove(tired, 'ann', to(next.x, next.y));
    expect(failure).toMatchObject({
      world: tired,
      outcome: { success: false, error: expect.stringMatching(/^Insufficient stamina: .* 0\.0099 is left.*"rest"/) },
    });
    const rested = applyMove(tired, 'ann', REST);
    expect(rested).toMatchObject({ world: { tick: 1 }, outcome: { result: { stamina: 0.1099 } } });
  });

  it('gathers what a cell has until nothing is left, for all agents', () => {
    const deposit = cellsAround(PLAN, home, 15)
      .flatMap((cell) => depositAt(PLAN, cell) ?? [])
      .find(({ amount }) => amount === 2);
    if (deposit === undefined) throw new Error('the seed has no such cell');
    const there = travel(travel(EMPTY, 'ann', deposit), 'bob', deposit);
    const { resource } = deposit;
    expect(outcomeOf({ tool: 'gather_resource', resource: 'gold' }, there)).toMatchObject({
      success: false,
      error: `There is no gold here, but ${resource}.`,
    });
    const first = applyMove(there, 'ann', { tool: 'gather_resource' });
    expect(first.outcome).toMatchObject({ result: { resource, left: 1, stamina_used: 0.02, inventory: { [resource]: 1 } } });
    const second = applyMove(first.world, 'bob', { tool: 'gather_resource', resource });
    expect([second.outcome.success, outcomeOf({ tool: 'gather_resource' }, second.world).success]).toEqual([true, false]);
  });

  it('meets inhabitants and agents that are near', () => {
    expect(outcomeOf(meet('@nobody-1'))).toMatchObject({ success: false, error: expect.stringContaining('within 2 cells') });
    const inn = travel(EMPTY, 'ann', of('innkeeper'));
    expect(outcomeOf(meet('@innkeeper-1', 'rest'), inn)).toMatchObject({ result: { stamina: 1 } });
    const asked = outcomeOf(meet('@guide-1', 'talk', 'Where is wood?'), travel(EMPTY, 'ann', of('guide')));
    const [, x = '', y = ''] = /nearest wood is at \((\d+), (\d+)\)/.exec(JSON.stringify(asked)) ?? [];
    expect(leftAt(EMPTY, { x: Number(x), y: Number(y) })?.resource).toBe('wood');
    const [ann, bob] = ['ann', characterName('bob', 'eve')].map((who) => ({ name: who, ...of('guide'), stamina: 500, inventory: {} }));
    const meeting = World.parse({ ...EMPTY, characters: [ann, bob] });
    expect([outcomeOf(meet('bob/eve'), meeting).success, outcomeOf(meet('bob/eve', 'rest'), meeting).success]).toEqual([true, false]);
    expect(outcomeOf({ ...LOOK, radius: 2 }, meeting)).toMatchObject({
      result: {
        nearby_agents: [
          { name: '@guide-1', distance: 0 },
          { name: 'bob/eve', type: 'agent' },
        ],
      },
    });
  });
});
