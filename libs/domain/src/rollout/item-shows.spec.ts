import type { ItemShows } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hitOf } from '../../test/memory-records.js';
import { AnsweringModel, learnsFromCritique, type SpecGiven, World } from '../../test/rollout-fixture.js';
import { NO_SHOWS } from '../lift/effects.js';
import type { ShowCounters } from '../ports/memory.js';

const unknown: ShowCounters = { counters: async (_, items) => items.map(() => null) };
const harmful: Pick<ItemShows, 'shown' | 'withheld'> = {
  shown: { ...NO_SHOWS, n: 90, right: 9 },
  withheld: { ...NO_SHOWS, n: 9, right: 9 },
};
const known: ShowCounters = { counters: async (_, items) => items.map(() => harmful) };

interface Given {
  readonly ids?: readonly string[];
  readonly probability?: number;
  readonly counters?: ShowCounters;
  readonly spec?: SpecGiven;
  readonly answer?: (text: string, call: number) => string;
}

/** A rollout that recalls one fact for each id. */
function worldOf({ ids = ['f1', 'f2', 'f3'], probability = 0.5, counters = unknown, spec = {}, answer = learnsFromCritique }: Given = {}) {
  const hits = ids.map((id) => hitOf({ id, layer: 'semantic', kind: 'fact', text: `told by <${id}>` }));
  const model = new AnsweringModel(answer);
  const deps = { semantic: { search: async () => hits }, withholding: { probability, counters } };
  return { model, world: new World({ spec: { ...spec, memory: { recallCount: 9, ...spec.memory } }, model, deps }) };
}

async function ranWith(given: Given) {
  const made = worldOf(given);
  await made.world.run();
  return { ...made, shows: showsIn(made.world) };
}

const showsIn = (world: World) => world.outbox.of('shows')[0]?.shows ?? [];
const Ids = fc.uniqueArray(fc.stringMatching(/^[a-z0-9]{4,8}$/), { minLength: 1, maxLength: 6 });

describe('withholding recalled items', () => {
  it('shows a model no withheld item in any attempt, and counts each item once', async () => {
    await fc.assert(
      fc.asyncProperty(Ids, async (ids) => {
        const { model, shows } = await ranWith({ ids });
        expect(shows.map(({ id }) => id)).toEqual(ids);
        for (const { id, shown } of shows) expect(model.asked.some((text) => text.includes(`<${id}>`))).toBe(shown);
      }),
      { numRuns: 30 },
    );
  });

  it('draws the same again after a crash, whatever was counted meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(Ids, fc.integer({ min: 1, max: 3 }), async (ids, calls) => {
        const whole = await ranWith({ ids });
        let counters = unknown;
        const dies = { counters: (...asked: Parameters<ShowCounters['counters']>) => counters.counters(...asked) };
        let isDead = false;
        const answer = (text: string, call: number) => {
          if (call === calls && !isDead) {
            isDead = true;
            throw new Error('the worker is gone');
          }
          return learnsFromCritique(text);
        };
        const { world, model } = worldOf({ ids, counters: dies, answer });
        await expect(world.run()).rejects.toThrow('gone');
        if (world.steps.includes('a1.shows')) counters = known;
        await world.run();
        expect(world.outbox.of('shows')).toEqual(whole.world.outbox.of('shows'));
        for (const { id, shown } of showsIn(world)) expect(model.asked.join().includes(`<${id}>`)).toBe(shown);
      }),
      { numRuns: 30 },
    );
  });

  it('records how the first attempt ended, and the tokens of all attempts', async () => {
    const { world } = await ranWith({ ids: ['f1'] });
    expect(world.outbox.of('shows')).toMatchObject([
      { right: false, tokens: 45, shows: [{ layer: 'semantic', kind: 'fact', owner: { agent: 'coder', user: null } }] },
    ]);
    const { world: right } = await ranWith({ ids: ['f1'], answer: () => '```python\nprint("right")\n```' });
    expect(right.outbox.of('shows')).toMatchObject([{ right: true, tokens: 15 }]);
  });

  it('withholds an item that seems harmful half of the time', async () => {
    const ids = Array.from({ length: 9 }, (_, n) => `f${n}`);
    const withheld = async (counters: ShowCounters) => {
      const { shows } = await ranWith({ ids, probability: 0.0001, counters });
      return shows.filter(({ shown }) => !shown).length;
    };
    expect(await withheld(unknown)).toBe(0);
    expect(await withheld(known)).toBeGreaterThan(1);
  });

  it.each<[string, Given]>([
    ['nothing is withheld', { probability: 0 }],
    ['the task writes nothing to memory', { spec: { memory: { readOnly: true } } }],
    ['nobody judges the answer', { spec: { evaluator: { kind: 'none' } } }],
    ['nothing was recalled', { ids: [] }],
  ])('records nothing where %s', async (_, given) => {
    const { world } = await ranWith(given);
    expect(world.outbox.of('shows')).toEqual([]);
  });

  it('withholds in tasks that write nothing to memory, too', async () => {
    const { model } = await ranWith({ ids: ['f1', 'f2', 'f3', 'f4', 'f5', 'f6'], spec: { memory: { readOnly: true } } });
    const shown = model.asked.join().match(/<f\d>/g) ?? [];
    expect(new Set(shown).size).toBeLessThan(6);
  });
});
