import { embedderSetting } from '@etude/contracts/embedder-names';
import { EtudeError } from '@etude/contracts/errors';
import { memoryFileTrouble } from '@etude/contracts/memory-file';
import type { DatabaseSync } from 'node:sqlite';
import type { StoreOptions, VectorModel } from '../record-store.js';
import { APPLICATION_ID, CREATE_SCHEMA, createVectors, SCHEMA_VERSION } from './store-schema.js';

type Model = StoreOptions['model'];

/** Creates the tables in an empty file, in one transaction; otherwise makes sure that the file is one that we can use. */
export function ensureSchema(db: DatabaseSync, path: string, model: Model): void {
  if (isEmpty(db)) createOnce(db, model);
  checkIdentity(db, path, model);
}

/** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
export function checkIdentity(db: DatabaseSync, path: string, model: Model): void {
  const applicationId = pragma(db, 'application_id');
  const trouble = memoryFileTrouble(path, { applicationId, layout: pragma(db, 'user_version') });
  if (trouble !== null) throw new EtudeError('MEMORY_VERSION', trouble);
  if (applicationId !== APPLICATION_ID)
    throw new EtudeError('MEMORY_UNAVAILABLE', `${path} is a database of another program; name another path for the memory file`);
  requireModel(modelsIn(db), model, path);
}

/** @throws EtudeError MEMORY_VERSION */
export function requireModel(stored: readonly VectorModel[], { name, dimension }: Model, path: string): void {
  const known = stored.find((model) => model.name === name);
  if (known?.state === 'ready' && known.dimension === dimension) return;
  if (known?.state === 'building' && known.dimension === dimension) {
    throw new EtudeError(
      'MEMORY_VERSION',
      `the memory file ${path} has vectors of ${name} for a part of its records only; finish "etude memory reembed", and use ${listed(stored)} until then`,
    );
  }
  throw new EtudeError(
    'MEMORY_VERSION',
    `the memory file ${path} has vectors of ${listed(stored)}, but ${name} (${dimension} dimensions) is configured; vectors of two models ` +
      `cannot be compared. Start the services with the embedder that the file has (${settings(stored)} for every one of them), and move to ${name} with "etude memory reembed" from there`,
  );
}

function listed(stored: readonly VectorModel[]): string {
  return stored
    .filter(({ state }) => state === 'ready')
    .map(({ name, dimension }) => `${name} (${dimension} dimensions)`)
    .join(' and ');
}

function settings(stored: readonly VectorModel[]): string {
  return stored
    .filter(({ state }) => state === 'ready')
    .map(({ name, dimension }) => embedderSetting(name, dimension))
    .join(' or ');
}

function modelsIn(db: DatabaseSync): VectorModel[] {
  const rows = db.prepare('SELECT name, dimension, ready FROM model').all();
  return rows.map(({ name, dimension, ready }) => ({
    name: String(name),
    dimension: Number(dimension),
    state: ready === 1 ? 'ready' : 'building',
  }));
}

function createOnce(db: DatabaseSync, { name, dimension }: Model): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    if (isEmpty(db)) {
      db.exec(CREATE_SCHEMA);
      const insert = db.prepare('INSERT INTO model (name, dimension, ready) VALUES (?, ?, 1)');
      db.exec(createVectors(Number(insert.run(name, dimension).lastInsertRowid)));
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
