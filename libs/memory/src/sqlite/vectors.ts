import type { DatabaseSync } from 'node:sqlite';
import { type Model, RECORD_TEXTS_MAX } from '../record-store.js';
import { requireReadable, requireVector, storedModel } from '../vector-models.js';
import { layerCode } from './record-rows.js';
import type { StoreFile } from './store-file.js';
import { codeTable, createVectors, dropVectors, type ModelRow, modelRows, MODELS, vectorTable } from './store-schema.js';
import type { OwnerNumbers, TenantRows } from './tenant-rows.js';
import { vectorCode } from './vector-code.js';
import type { MemoryLayer } from '@etude/contracts/task';

/** A stored vector with its code. It has unit length, so that the squared distance of two vectors gives their cosine. */
export interface VectorBytes {
  readonly direction: Uint8Array;
  readonly code: Uint8Array;
}

/** Values stored beside a vector's code, so that a search can filter by them. */
export interface VectorTraits extends OwnerNumbers {
  readonly layer: MemoryLayer;
  /** The kind's number, negative for a hidden record. */
  readonly kind: number;
  readonly worth: number;
  readonly createdAt: number;
}

const vectorId = (record: number, place: number): number => record * RECORD_TEXTS_MAX + place;
export const recordOfVector = (id: number): number => Math.floor(id / RECORD_TEXTS_MAX);

/** Stored forms by vector, since a search of several layers and the write of a new fact use one vector more than once. */
const STORED = new WeakMap<Float32Array, VectorBytes | null>();

/**
 * The stored form of a vector; null for a missing vector or a vector of zeros. It is cached, so nobody may change the vector later.
 *
 * @throws EtudeError EMBEDDING_LENGTH_WRONG, also for numbers that aren't finite
 */
export function vectorBytes(vector: Float32Array | null, model: Model): VectorBytes | null {
  if (vector === null) return null;
  const known = STORED.get(vector);
  if (known !== undefined && vector.length === model.dimension) return known;
  const stored = storedForm(vector, requireVector(vector, model));
  STORED.set(vector, stored);
  return stored;
}

function storedForm(vector: Float32Array, squares: number): VectorBytes | null {
  if (squares === 0) return null;
  const scale = 1 / Math.sqrt(squares);
  const direction = new Float32Array(vector.length);
  for (let i = 0; i < vector.length; i += 1) direction[i] = vector[i]! * scale;
  return { direction: new Uint8Array(direction.buffer, direction.byteOffset, direction.byteLength), code: vectorCode(direction) };
}

export function cosineOf(distance: number): number {
  return 1 - distance ** 2 / 2;
}

export function insertVectors(
  rows: TenantRows,
  model: number,
  record: number,
  traits: VectorTraits,
  vectors: ReadonlyArray<VectorBytes | null>,
): void {
  const { layer, agent, user, kind, worth, createdAt } = traits;
  const insertVector = `INSERT INTO ${vectorTable(model)} (id, tenant, embedding) VALUES (:id, :tenant, :direction)`;
  const insertCode = `INSERT INTO ${codeTable(model)} (id, tenant, layer, code, agent, user, kind, worth, created_at)
    VALUES (:id, :tenant, :layer, vec_bit(:code), :agent, :user, :kind, CAST(:worth AS REAL), :createdAt)`;
  let count = 0;
  vectors.forEach((vector, place) => {
    if (vector === null) return;
    count += 1;
    const id = vectorId(record, place);
    const { direction, code } = vector;
    rows.run(insertVector, { id, direction });
    rows.run(insertCode, { id, layer: layerCode(layer), code, agent, user, kind, worth, createdAt });
  });
  rows.run('INSERT INTO embedding (model, record, tenant, vectors) VALUES (:model, :record, :tenant, :count)', { model, record, count });
}

export function updateVectors(rows: TenantRows, record: number, texts: number, traits: VectorTraits): void {
  const { agent, user, kind, worth, createdAt } = traits;
  for (const model of embeddedBy(rows, record)) {
    for (let place = 0; place < texts; place += 1) {
      rows.run(
        `UPDATE ${codeTable(model)} SET agent = :agent, user = :user, kind = :kind, worth = CAST(:worth AS REAL), created_at = :createdAt
         WHERE id = :id AND tenant = :tenant`,
        { id: vectorId(record, place), agent, user, kind, worth, createdAt },
      );
    }
  }
}

/** Deletes a record's vectors and notes, of the model `only` or of every model. */
export function deleteVectors(rows: TenantRows, record: number, texts: number, only?: number): void {
  for (const model of embeddedBy(rows, record).filter((id) => only === undefined || id === only)) {
    for (let place = 0; place < texts; place += 1) {
      for (const table of [codeTable(model), vectorTable(model)]) {
        rows.run(`DELETE FROM ${table} WHERE id = :id AND tenant = :tenant`, { id: vectorId(record, place) });
      }
    }
    rows.run('DELETE FROM embedding WHERE model = :model AND record = :record AND tenant = :tenant', { model, record });
  }
}

function embeddedBy(rows: TenantRows, record: number): number[] {
  return rows
    .all<{ model: number }>(
      'SELECT model.id AS model FROM model CROSS JOIN embedding ON model = model.id AND record = :record WHERE tenant = :tenant',
      { record },
    )
    .map(({ model }) => model);
}

export async function addModel(file: StoreFile, { name, dimension }: Model): Promise<void> {
  await file.writeWhole((db) => {
    if (modelRows(db).some((row) => row.name === name)) return;
    run(db, 'INSERT INTO model (name, dimension, ready) VALUES (?, ?, 0)', name, dimension);
    db.exec(createVectors(storedModel(modelRows(db), name, file.where).id));
  });
}

export async function setModelReady(file: StoreFile, name: string): Promise<void> {
  await file.writeWhole((db) => run(db, 'UPDATE model SET ready = 1 WHERE name = ?', name));
}

export async function dropModel(file: StoreFile, name: string): Promise<void> {
  await file.writeWhole((db) => {
    const known = modelRows(db).find((model) => model.name === name);
    if (known === undefined) return;
    db.exec(dropVectors(known.id));
    run(db, 'DELETE FROM embedding WHERE model = ?', known.id);
    run(db, 'DELETE FROM model WHERE id = ?', known.id);
  });
}

function run(db: DatabaseSync, sql: string, ...values: ReadonlyArray<string | number>): void {
  const statement = db.prepare(sql);
  // The last inserted row may be a row of FTS5, whose numbers are too large for a JavaScript number.
  statement.setReadBigInts(true);
  statement.run(...values);
}

export function modelsIn(rows: TenantRows): ModelRow[] {
  return rows.all<ModelRow>(`${MODELS} WHERE :tenant IS NOT NULL`);
}

/** The number of the store's model. @throws EtudeError MEMORY_VERSION if it was dropped meanwhile */
export function numberOfModel(rows: TenantRows, model: Model, { where }: StoreFile): number {
  const stored = modelsIn(rows);
  requireReadable(stored, model, where);
  return storedModel(stored, model.name, where).id;
}
