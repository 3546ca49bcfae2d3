import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Embedder } from '@etude/domain/ports/model';
import type { Memory } from '@etude/memory/memory';
import { openMemory } from '@etude/memory/open-memory';
import { describeQdrant, findQdrant, startQdrant } from '@etude/test-support/qdrant';
import { BareQdrant } from './memory-bare-qdrant.js';
import { BareSqlite } from './memory-bare-sqlite.js';
import { type DataQuery, type DataRecord, DIMENSION, indexedOf, NOW, recordOf, tenantName } from './memory-data.js';
import type { Side } from './memory-growth.js';
import { residentMiB } from './memory-resident.js';

/** Etude and the bare store over the same kind of database, empty at first. */
export interface Sides {
  readonly ours: Side;
  readonly bare: Side;
  /** Name of the database, for people. */
  readonly what: string;
  /** Whether the database is real and not a stand-in. */
  readonly real: boolean;
  disk(): Promise<{ ours: number | null; bare: number | null }>;
  /** MiB by which a process grows when it opens and searches Etude's store; null if the database runs in another process. */
  resident(records: number): Promise<number | null>;
  close(): Promise<void>;
}

/** Knows the vectors of its queries beforehand, so that the figures include no time for embedding. */
export class QueryVectors implements Embedder {
  readonly profile = { model: 'bench-384', dimension: DIMENSION, denseWeight: 0.5, calibrate: (cosine: number) => Math.max(0, cosine) };
  readonly #vectors = new Map<string, Float32Array>();

  know(queries: readonly DataQuery[]): this {
    for (const { text, vector } of queries) this.#vectors.set(text, vector);
    return this;
  }

  async embed(texts: readonly string[]): Promise<readonly Float32Array[]> {
    return texts.map((text) => {
      const vector = this.#vectors.get(text);
      if (vector === undefined) throw new Error(`no vector was made for the query ${JSON.stringify(text)}`);
      return vector;
    });
  }
}

export const CLOCK = { now: () => NOW };

/** Etude's side. Inserts use the store. Searches use the layer, which fuses both lists, ranks the hits and loads whole records. */
export function ourSide(memory: Memory): Side {
  return {
    insert: (records: readonly DataRecord[]) =>
      memory.store.write(
        tenantName(records[0]?.tenant ?? 0),
        records.map((record) => ({ do: 'insert', record: recordOf(record), indexed: [indexedOf(record)] })),
      ),
    searches: { ours: ({ tenant, text }) => memory.semantic.search({ tenant: tenantName(tenant), agent: null }, { text, limit: 10 }) },
  };
}

export async function sqliteSides(embedder: QueryVectors): Promise<Sides> {
  const dir = await mkdtemp(join(tmpdir(), 'etude-bench-memory-'));
  const path = join(dir, 'etude.db');
  const memory = await openMemory({ store: { adapter: 'sqlite', path }, embedder, clock: CLOCK });
  const bare = new BareSqlite(join(dir, 'bare.db'));
  return {
    what: 'SQLite',
    real: true,
    ours: ourSide(memory),
    bare: {
      insert: (records) => bare.insert(records),
      searches: { bareDense: (query) => bare.searchDense(query), bareHybrid: (query) => bare.searchHybrid(query) },
    },
    disk: async () => ({ ours: memory.store.diskBytes(), bare: bare.diskBytes() }),
    resident: (records) => residentMiB(path, records),
    async close() {
      await memory.close();
      bare.close();
      if (existsSync(dir)) await rm(dir, { recursive: true });
    },
  };
}

export async function qdrantSides(embedder: QueryVectors): Promise<Sides> {
  const source = await findQdrant();
  const server = await startQdrant(source);
  const prefix = `bench-${process.pid}`;
  const { url, apiKey, caPath } = server;
  const timeoutMs = 120_000;
  const memory = await openMemory({
    store: { adapter: 'qdrant', url, apiKey, caPath, collectionPrefix: prefix, timeoutMs },
    embedder,
    clock: CLOCK,
  });
  const bare = await BareQdrant.open(server, `${prefix}-bare`);
  return {
    what: describeQdrant(source),
    real: source.kind !== 'stand-in',
    ours: ourSide(memory),
    bare: {
      insert: (records) => bare.insert(records),
      searches: { bareDense: (query) => bare.searchDense(query), bareHybrid: (query) => bare.searchHybrid(query) },
    },
    disk: async () => ({ ours: memory.store.diskBytes(), bare: null }),
    resident: async () => null,
    async close() {
      await memory.close();
      await server.drop(prefix);
      await server.stop();
    },
  };
}
