import { LiftSchema, type Memory as MemoryService } from '@etude/contracts/gen/etude/v1/memory_pb';
import { MemoryLayer } from '@etude/contracts/task';
import { addSides, hasEnough, isHarmful, NO_SHOWS, successEffect, tokenEffect } from '@etude/domain/lift/effects';
import type { LayerShows } from '@etude/memory/layers/item-shows';
import type { Handlers } from '../calls/calls.js';
import { askedSkills, readScope, seesUsers } from '../readers/readers.js';
import { parseField } from '@etude/contracts/wire/validation';
import { toWire } from '@etude/contracts/wire/messages';
import type { MemoryDeps } from './record-calls.js';

type Sides = Pick<LayerShows, 'shown' | 'withheld'>;

const ITEMS_MAX = 1_000;

export const liftCalls = {
  async getLift(request, call, deps) {
    const { layer, item } = request;
    const layers = layer === '' ? MemoryLayer.options : [parseField(MemoryLayer, layer, 'layer')];
    const asked = askedSkills(call, request);
    const memory = await deps.memory.open();
    const query = { layers, ...(item === '' ? {} : { item }) };
    const sums = new Map(layers.map((one) => [one, { shown: NO_SHOWS, withheld: NO_SHOWS }]));
    const items: LayerShows[] = [];
    for await (const shows of memory.shows.list(readScope(call, request), query)) {
      if (shows.layer === 'procedural' && !seesUsers(asked, shows)) continue;
      sums.set(shows.layer, added(sums.get(shows.layer)!, shows));
      if (item !== '' || hasEnough(shows)) items.push(shows);
    }
    return toWire(LiftSchema, {
      memory: liftOf([...sums.values()].reduce(added)),
      layers: [...sums].map(([name, sides]) => ({ layer: name, ...liftOf(sides) })),
      items: items.toSorted(byHarm).slice(0, ITEMS_MAX).map(itemLift),
    });
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

const added = (a: Sides, b: Sides): Sides => ({ shown: addSides(a.shown, b.shown), withheld: addSides(a.withheld, b.withheld) });

const byHarm = (a: Sides, b: Sides) => (successEffect(a)?.estimate ?? 0) - (successEffect(b)?.estimate ?? 0);

function itemLift(shows: LayerShows) {
  const { layer, kind, id, scope, archived } = shows;
  const { agent, user } = scope;
  return { layer, kind, id, agent, user: user ?? '', ...liftOf(shows), archiveReason: archived?.reason ?? '' };
}

function liftOf(sides: Sides) {
  const { shown, withheld } = sides;
  const counts = { shown: shown.n, shownRight: shown.right, withheld: withheld.n, withheldRight: withheld.right };
  const [success, tokens] = [successEffect(sides), tokenEffect(sides)];
  return { ...counts, ...(success === null ? {} : { success }), ...(tokens === null ? {} : { tokens }), harmful: isHarmful(sides) };
}
