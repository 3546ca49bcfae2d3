import { bodyOf, everyValue, parseBody, putRecord, untilTaken, withTaken, UNSEARCHED } from './records.js';
import { LAYERS, type MemoryRecord, type RecordStore } from '../record-store.js';
import { errorCode } from '@etude/contracts/errors';
import type { FoundItem, ItemShow, ItemShows, MemoryWrite } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { addSides, NO_SHOWS, showKey } from '@etude/domain/lift/effects';
import type { ReadScope, ShowCounters } from '@etude/domain/ports/memory';
import { nameOfShown } from '@etude/domain/trust/sources';

type ShowsWrite = Extract<MemoryWrite, { kind: 'shows' }>;
export interface ItemShowsQuery {
  /** Default: all. */
  readonly layers?: readonly MemoryLayer[];
  readonly item?: string;
}

export type LayerShows = ItemShows & Pick<FoundItem, 'layer'>;

/**
 * Counts how rollouts ended, per item, such as a fact or a skill. Rollouts that saw the item and rollouts from which it was withheld are
 * counted apart. The counters belong to the item's owner.
 */
export function itemShows(store: RecordStore) {
  return {
    async counters(tenant: string, items: readonly FoundItem[]) {
      const keysIn = (layer: MemoryLayer) => items.filter((item) => item.layer === layer).map(showKey);
      const found = await Promise.all(LAYERS.map((layer) => store.load({ tenant, agent: null }, layer, 'shows', keysIn(layer))));
      const known = new Map(found.flat().map((record) => [record.key, parseBody<ItemShows>(record).value]));
      return items.map((item) => known.get(showKey(item)) ?? null);
    },

    /** Counts the end of a rollout once for each of its items, also if the call is repeated. Items of an owner erased meanwhile are left out. */
    async count(writeId: string, write: ShowsWrite): Promise<void> {
      for (const show of write.shows)
        await countShow(store, writeId, write, show).catch((error: unknown) => {
          if (errorCode(error) !== 'ABORTED') throw error;
        });
    },

    /** The counters of the items that the reader sees, in no order. */
    async *list(scope: ReadScope, { layers = LAYERS, item }: ItemShowsQuery = {}): AsyncGenerator<LayerShows> {
      const filter = { kinds: ['shows'], ...(item === undefined ? {} : { where: { id: item } }) } as const;
      for (const layer of layers) for await (const shows of everyValue<ItemShows>(store, scope, layer, filter)) yield { ...shows, layer };
    },
  } satisfies ShowCounters & Record<string, unknown>;
}

async function countShow(store: RecordStore, writeId: string, { scope: { tenant }, right, tokens, at }: ShowsWrite, show: ItemShow) {
  const { layer, kind, id, owner } = show;
  const side = show.shown ? 'shown' : 'withheld';
  const one = { n: 1, right: right ? 1 : 0, tokens, tokensSquared: tokens * tokens };
  await untilTaken(`the shows of ${kind} ${id}`, async () => {
    const [known] = await store.load({ tenant, agent: null }, layer, 'shows', [showKey(show)]);
    const fresh: ItemShows = { scope: { tenant, ...owner }, kind, id, shown: NO_SHOWS, withheld: NO_SHOWS, createdAt: at };
    const { value, taken } = known === undefined ? { value: fresh, taken: [] } : parseBody<ItemShows>(known);
    if (taken.includes(writeId)) return true;
    const record = showsRecord(layer, { ...value, [side]: addSides(value[side], one) }, withTaken(taken, writeId));
    return (await putRecord(store, record, known)) || null;
  });
}

/** The field `name` names the item's record, or for a chunk its document. Deleting that record also deletes the counters. */
export function showsRecord(layer: MemoryLayer, shows: ItemShows, taken: readonly string[]): MemoryRecord {
  const { scope, kind, id, createdAt } = shows;
  const key = showKey({ owner: scope, kind, id });
  const name = nameOfShown({ kind, id });
  const fields = { id, ...(name === null ? {} : { name }) };
  return { layer, kind: 'shows', key, scope, createdAt, ...UNSEARCHED, fields, body: bodyOf(shows, taken) };
}
