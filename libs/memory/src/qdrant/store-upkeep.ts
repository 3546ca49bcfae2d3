import type { MemoryLayer } from '@etude/contracts/task';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordKind, StoreReport } from '../record-store.js';
import { type BodyParts } from './body-parts.js';
import { ANCHOR_TENANT, type CollectionNames, LAYERS, vectorName } from './collections.js';
import type { QdrantServer } from './qdrant-server.js';
import { is, type PartSet, partsIn } from './record-payload.js';
import { TenantPoints } from './tenant-points.js';

const TENANTS_PER_REQUEST = 10_000;
const PARTS_PER_PAGE = 1_000;
/** A write that long after its parts has died. */
const ORPHAN_MS = 10 * 60_000;
const SAID_MAX = 100;
const VACUUM_WAIT_MS = 60_000;
const VACUUM_LOOK_MS = 100;
/** It does not start at once, and is at rest before. */
const VACUUM_REST_LOOKS = 5;
/** Qdrant's own values, and the least that it takes. */
const VACUUM_USUAL = { deleted_threshold: 0.2, vacuum_min_vector_number: 1_000 };
const VACUUM_AT_ONCE = { deleted_threshold: 0.0001, vacuum_min_vector_number: 100 };

/** By name, of all that have a point in these collections. Not within one tenant: for maintenance of the whole store. */
export async function tenantsOf(server: QdrantServer, collections: readonly string[]): Promise<string[]> {
  const tenants = new Set<string>();
  for (const collection of collections) {
    for (let limit = TENANTS_PER_REQUEST; ; limit *= 10) {
      const request = { key: 'tenant', limit, exact: true };
      const { hits } = await server.ask(`name the tenants in ${collection}`, (client) => client.facet(collection, request));
      // Of what was deleted a value may stay in the index, which nothing has.
      for (const { value, count } of hits) if (count > 0 && value !== ANCHOR_TENANT) tenants.add(String(value));
      if (hits.length < limit) break;
    }
  }
  return [...tenants].toSorted();
}

export interface Reconciling {
  readonly server: QdrantServer;
  readonly names: CollectionNames;
  readonly model: string;
  readonly partsOf: (points: TenantPoints) => BodyParts;
  readonly now: () => number;
}

/** A point is written whole or not at all, so what can be half there are parts, and vectors of a model that changed. */
export async function reconcile(deps: Reconciling): Promise<StoreReport> {
  const checked = { records: 0, vectors: 0, texts: 0, parts: 0 };
  const repaired: string[] = [];
  const problems: string[] = [];
  for (const tenant of await tenantsOf(deps.server, [...Object.values(deps.names.layers), deps.names.parts])) {
    const points = TenantPoints.of(deps.server, tenant);
    for (const layer of LAYERS) {
      const counts = await countLayer(points, deps, layer);
      checked.records += counts.records;
      checked.vectors += counts.vectors;
      checked.texts += counts.texts;
      if (counts.without > 0)
        problems.push(
          `${counts.without} records of tenant ${tenant} in the ${layer} layer have no vectors of ${deps.model}; run \`etude memory reembed\``,
        );
    }
    const { seen, orphans, missing } = await lookAtParts(points, deps);
    checked.parts += seen;
    problems.push(...missing);
    if (orphans.length === 0) continue;
    await deps.partsOf(points).drop(orphans);
    repaired.push(`${orphans.length} contents of tenant ${tenant} that belong to no record were removed`);
  }
  return { checked, repaired: repaired.slice(0, SAID_MAX), problems: problems.slice(0, SAID_MAX) };
}

async function countLayer(points: TenantPoints, { names, model }: Reconciling, layer: MemoryLayer) {
  const collection = names.layers[layer];
  const vector = { has_vector: vectorName(model) };
  const worded = is('worded', true);
  return {
    records: await points.count(collection, {}),
    vectors: await points.count(collection, { must: [vector] }),
    texts: await points.count(collection, { must: [worded] }),
    without: await points.count(collection, { must: [worded], mustNot: [vector, is('blank', model)] }),
  };
}

/** Parts that no record names, and records that name parts which are not there. */
async function lookAtParts(points: TenantPoints, { names, now }: Reconciling) {
  const sets = await setsOfParts(points, names.parts);
  const named = await setsOfRecords(points, names);
  const dead = now() - ORPHAN_MS;
  const orphans = [...sets].filter(([set, { writtenAt }]) => !named.has(set) && writtenAt < dead).map(([set]) => set);
  const missing: string[] = [];
  for (const [set, { id, layer, kind, parts }] of named) {
    if (sets.get(set)?.count === parts.count) continue;
    // It may have been written between the two looks.
    if ((await points.count(names.parts, { must: [is('set', set)] })) === parts.count) continue;
    const { points: still } = await points.scroll(names.layers[layer], { must: [{ has_id: [id] }] }, { limit: 1, payload: ['parts'] });
    if (!still.some(({ payload }) => partsIn(payload)?.set === set)) continue;
    missing.push(`a ${kind} of tenant ${points.tenant} has lost a part of its content; restore the collections from a snapshot`);
  }
  return { seen: [...sets.values()].reduce((sum, { count }) => sum + count, 0), orphans, missing };
}

async function setsOfParts(points: TenantPoints, collection: string) {
  const sets = new Map<string, { count: number; writtenAt: number }>();
  for (let offset: string | undefined; ;) {
    const page = { limit: PARTS_PER_PAGE, payload: ['set', 'written_at'], ...(offset === undefined ? {} : { offset }) };
    const { points: found, next } = await points.scroll(collection, {}, page);
    for (const { payload } of found) {
      const known = sets.get(String(payload['set']));
      sets.set(String(payload['set']), { count: (known?.count ?? 0) + 1, writtenAt: Number(payload['written_at']) });
    }
    if (next === null) return sets;
    offset = next;
  }
}

async function setsOfRecords(points: TenantPoints, names: CollectionNames) {
  const named = new Map<string, { id: string; layer: MemoryLayer; kind: RecordKind; parts: PartSet }>();
  for (const layer of LAYERS) {
    for (let offset: string | undefined; ;) {
      const page = { limit: PARTS_PER_PAGE, payload: ['parts', 'kind'], ...(offset === undefined ? {} : { offset }) };
      const { points: found, next } = await points.scroll(names.layers[layer], { must: [is('cut', true)] }, page);
      for (const { id, payload } of found) {
        const parts = partsIn(payload);
        if (parts !== null) named.set(parts.set, { id, layer, kind: payload['kind'] as RecordKind, parts });
      }
      if (next === null) break;
      offset = next;
    }
  }
  return named;
}

/**
 * Deleted points stay in their segments until these are written anew. Qdrant does so on its own once a fifth of a segment is
 * deleted; here it is told to do so at once, and waited for.
 */
export async function purge(server: QdrantServer, names: CollectionNames): Promise<string[]> {
  const collections = [...Object.values(names.layers), names.parts];
  const done = await Promise.all(collections.map((collection) => vacuum(server, collection)));
  const slow = collections.filter((_collection, i) => !done[i]);
  return [
    `deleted points were taken out of every answer, and ${collections.length} collections were told to write segments with more than 100 points anew without them`,
    ...(slow.length === 0
      ? ['Qdrant says that it has done so']
      : [`Qdrant was still busy with ${slow.join(', ')} after ${VACUUM_WAIT_MS / 1_000} s, and goes on by itself`]),
    'segments with fewer points, the last pieces of the write-ahead log (32 MiB each) and snapshots may hold bytes of what was deleted until Qdrant writes over them; nothing that it answers shows them',
  ];
}

/** Whether it was done in time. */
async function vacuum(server: QdrantServer, collection: string): Promise<boolean> {
  await configureVacuum(server, collection, VACUUM_AT_ONCE);
  try {
    return await comesToRest(server, collection);
  } finally {
    await configureVacuum(server, collection, VACUUM_USUAL);
  }
}

async function configureVacuum(server: QdrantServer, collection: string, optimizers_config: typeof VACUUM_USUAL): Promise<void> {
  await server.ask(`clean ${collection}`, (client) => client.updateCollection(collection, { optimizers_config }));
}

/** Whether its optimizers did so in time. */
async function comesToRest(server: QdrantServer, collection: string): Promise<boolean> {
  const deadline = performance.now() + VACUUM_WAIT_MS;
  for (let rested = 0; performance.now() < deadline; await sleep(VACUUM_LOOK_MS)) {
    const { status, optimizer_status } = await server.ask(`tell about ${collection}`, (client) => client.getCollection(collection));
    rested = status === 'green' && optimizer_status === 'ok' ? rested + 1 : 0;
    if (rested === VACUUM_REST_LOOKS) return true;
  }
  return false;
}

interface Telemetry {
  readonly memory?: { readonly resident_bytes?: number } | null;
  readonly collections?: {
    readonly collections?: ReadonlyArray<{ readonly id?: string; readonly shards?: readonly unknown[] | null }> | null;
  };
}

interface Shard {
  readonly local?: { readonly segments?: ReadonlyArray<{ readonly info?: Readonly<Record<string, unknown>> }> | null } | null;
}

/** As far as its telemetry tells: on disk what the segments say, in memory that of the whole server. */
export async function sizeOf(
  server: QdrantServer,
  names: CollectionNames,
): Promise<{ diskBytes: number | null; memoryBytes: number | null }> {
  const own = new Set([...Object.values(names.layers), names.parts, names.meta]);
  const telemetry = await server
    .ask('tell its size', async (client) => (await client.api().telemetry({ details_level: 4 })).data.result as Telemetry | undefined)
    .catch(() => undefined);
  const shards = (telemetry?.collections?.collections ?? []).filter(({ id }) => own.has(id ?? '')).flatMap(({ shards: all }) => all ?? []);
  const infos = shards.flatMap((shard) => (shard as Shard).local?.segments ?? []).map(({ info }) => info ?? {});
  const diskBytes = infos.reduce((sum, info) => sum + bytesOf(info), 0);
  return { diskBytes: diskBytes > 0 ? diskBytes : null, memoryBytes: telemetry?.memory?.resident_bytes ?? null };
}

/** Older servers say 0 for the disk, and how large vectors and payloads are. */
function bytesOf(info: Readonly<Record<string, unknown>>): number {
  const number = (name: string) => (typeof info[name] === 'number' ? info[name] : 0);
  return number('disk_usage_bytes') || number('vectors_size_bytes') + number('payloads_size_bytes');
}
