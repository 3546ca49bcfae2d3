import type { StoreOptions, VectorModel } from '../record-store.js';
import { requireReadable, requireSameDimension, requireVector, storedModel } from '../vector-models.js';
import { layerCode } from './record-rows.js';
import type { StoreFile, WholeFile } from './store-file.js';
import { codeTable, createVectors, dropVectors, MODELS, TEXTS_MAX, vectorTable } from './store-schema.js';
import type { OwnerNumbers, TenantRows } from './tenant-rows.js';
import { vectorCode } from './vector-code.js';
import type { MemoryLayer } from '@etude/contracts/task';

/** A stored vector with its code. It has unit length, so that the squared distance of two gives their cosine. */
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

export const vectorId = (record: number, place: number): number => record * TEXTS_MAX + place;
export const recordOfVector = (id: number): number => Math.floor(id / TEXTS_MAX);

/** Stored forms by vector, since a search of several layers and the write of a new fact use one vector more than once. */
const STORED = new WeakMap<Float32Array, VectorBytes | null>();

/**
 * The stored form of a vector, which nobody may change later; null for a text without direction, such as one without a word.
 *
 * @throws EtudeError EMBEDDING_LENGTH_WRONG, also for numbers that aren't finite
 */
export function vectorBytes(vector: Float32Array | null, model: StoreOptions['model']): VectorBytes | null {
  if (vector === null) return null;
  requireVector(vector, model);
  const known = STORED.get(vector);
  if (known !== undefined) return known;
  const stored = storedForm(vector);
  STORED.set(vector, stored);
  return stored;
}

function storedForm(vector: Float32Array): VectorBytes | null {
  let squares = 0;
  for (const value of vector) squares += value * value;
  if (squares === 0) return null;
  const scale = 1 / Math.sqrt(squares);
  const direction = new Float32Array(vector.length);
  for (let i = 0; i < vector.length; i += 1) direction[i] = vector[i]! * scale;
  return { direction: new Uint8Array(direction.buffer, direction.byteOffset, direction.byteLength), code: vectorCode(direction) };
}

export function cosineOf(distance: number): number {
  return 1 - distance ** 2 / 2;
}

/** Inserts a record's vectors and the note that the model has embedded the record. */
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

/** Updates the traits of a record's vectors, for every model that has some. */
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

interface ModelRow extends VectorModel {
  readonly id: number;
}

export class VectorModels {
  readonly #file: StoreFile;
  readonly #where: string;

  constructor(file: StoreFile) {
    this.#file = file;
    this.#where = `the memory file ${file.path}`;
  }

  async list(): Promise<readonly VectorModel[]> {
    const models = await this.#file.readWhole(modelRows);
    return models.map(({ id: _id, ...model }) => model);
  }

  async add(model: StoreOptions['model']): Promise<void> {
    const { name, dimension } = model;
    await this.#file.writeWhole((file) => {
      const known = modelRows(file).find((row) => row.name === name);
      if (known !== undefined) return requireSameDimension(known, model, this.#where);
      file.run('INSERT INTO model (name, dimension, ready) VALUES (?, ?, 0)', name, BigInt(dimension));
      file.exec(createVectors(storedModel(modelRows(file), name, this.#where).id));
    });
  }

  async setReady(name: string): Promise<void> {
    await this.#file.writeWhole((file) => file.run('UPDATE model SET ready = 1 WHERE name = ?', name));
  }

  async drop(name: string): Promise<void> {
    await this.#file.writeWhole((file) => {
      const known = modelRows(file).find((model) => model.name === name);
      if (known === undefined) return;
      file.exec(dropVectors(known.id));
      file.run('DELETE FROM embedding WHERE model = ?', BigInt(known.id));
      file.run('DELETE FROM model WHERE id = ?', BigInt(known.id));
    });
  }

  /** The store's model's number, for a transaction on a tenant's rows. @throws EtudeError MEMORY_VERSION if it was dropped meanwhile */
  numberOf(rows: TenantRows, model: StoreOptions['model']): number {
    const stored = this.#stored(rows);
    requireReadable(stored, model, this.#where);
    return storedModel(stored, model.name, this.#where).id;
  }

  /** @throws EtudeError NOT_FOUND */
  find(rows: TenantRows, name: string): ModelRow {
    return storedModel(this.#stored(rows), name, this.#where);
  }

  #stored(rows: TenantRows): ModelRow[] {
    return rows.all<ModelRow>(`${MODELS} WHERE :tenant IS NOT NULL`);
  }
}

function modelRows(file: WholeFile): ModelRow[] {
  return file.all<ModelRow>(`${MODELS} ORDER BY id`);
}
