import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { whileRewriting } from './file-rewrite.js';
import { memoryError } from './sqlite-errors.js';
import type { FileOptions } from './store-file.js';
import { configure, patiently } from './store-file.js';
import { layoutOf } from './store-identity.js';
import { codeTable, createVectors, vectorTable } from './store-schema.js';
import { vectorCode } from './vector-code.js';

const LAYOUT = 2;
const TRY_MS = 20;
/** Then the process does other work. */
const BATCH = 200;

/** Where the second layout kept the vectors of a model, which a search had to go through. */
const oldTable = (model: number): string => `record_vector_${model}`;

interface OldVector {
  readonly id: number;
  readonly tenant: number;
  readonly layer: number;
  readonly embedding: Uint8Array;
  readonly agent: number;
  readonly user: number;
  readonly kind: number;
  readonly worth: number;
  readonly createdAt: number;
}

/**
 * Takes a file of the second layout to the present one: gives vectors their codes, and a table of their own. Does nothing to any other.
 *
 * One transaction: a process that is killed in it leaves the file as it was. Whoever opens the file meanwhile waits as for a file that
 * is written anew.
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL
 */
export async function addCodes(options: FileOptions): Promise<void> {
  const { path } = options;
  const db = await patiently(options, () => lockVersion2(options));
  if (db === null) return;
  try {
    await whileRewriting(path, async () => {
      const models = db.prepare('SELECT id FROM model ORDER BY id').all();
      for (const { id } of models) await moveVectors(db, Number(id));
      db.exec('DROP TABLE place; PRAGMA user_version = 3; COMMIT');
    });
  } catch (error) {
    throw memoryError(error, path);
  } finally {
    db.close();
  }
}

/** In a transaction that writes; null where the file is of another layout or not there. */
function lockVersion2(options: FileOptions): DatabaseSync | null {
  if (!existsSync(options.path)) return null;
  const db = new DatabaseSync(options.path, { allowExtension: true, timeout: TRY_MS });
  try {
    if (layoutOf(db) === LAYOUT) {
      configure(db, options);
      db.exec('BEGIN IMMEDIATE');
      // Another process may have done it while this one waited.
      if (layoutOf(db) === LAYOUT) return db;
    }
  } catch (error) {
    db.close();
    throw error;
  }
  db.close();
  return null;
}

async function moveVectors(db: DatabaseSync, model: number): Promise<void> {
  db.exec(createVectors(model));
  const insertVector = db.prepare(`INSERT INTO ${vectorTable(model)} (id, tenant, embedding) VALUES (?, ?, ?)`);
  const insertCode = db.prepare(
    `INSERT INTO ${codeTable(model)} (id, tenant, layer, code, agent, user, kind, worth, created_at)
     VALUES (?, ?, ?, vec_bit(?), ?, ?, ?, CAST(? AS REAL), ?)`,
  );
  const old = db.prepare(`SELECT id, tenant, layer, embedding, agent, user, kind, worth, created_at AS createdAt FROM ${oldTable(model)}`);
  let moved = 0;
  for (const row of old.iterate() as Iterable<unknown>) {
    const { id, tenant, layer, embedding, agent, user, kind, worth, createdAt } = row as OldVector;
    const [at, of] = [BigInt(id), BigInt(tenant)];
    insertVector.run(at, of, embedding);
    insertCode.run(at, of, BigInt(layer), codeOf(embedding), BigInt(agent), BigInt(user), BigInt(kind), worth, BigInt(createdAt));
    moved += 1;
    if (moved % BATCH === 0) await nextTurn();
  }
  db.exec(`DROP TABLE ${oldTable(model)}`);
}

/** Of bytes that may begin anywhere. */
function codeOf(embedding: Uint8Array): Uint8Array {
  return vectorCode(new Float32Array(Uint8Array.from(embedding).buffer));
}
