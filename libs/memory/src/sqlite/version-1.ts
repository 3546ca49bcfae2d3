import { EtudeError } from '@etude/contracts/errors';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { RecordStore } from '../record-store.js';
import { isBusy, memoryError } from './sqlite-errors.js';
import type { FileOptions } from './store-file.js';
import { patiently } from './store-file.js';
import { layoutOf } from './store-identity.js';

/** A record of a file of the first layout, whole. */
export type Version1Record =
  /** `json` is the record as it was stored; of a skill, with its fingerprints. */
  | { readonly kind: 'transition' | 'episode' | 'fact' | 'skill'; readonly tenant: string; readonly json: string }
  /** That a write, a unit of facts or a use of a skill was applied. */
  | { readonly kind: 'applied'; readonly tenant: string; readonly what: 'write' | 'facts' | 'use'; readonly id: string };

/** Writes the records of an old file into a new store. Both are discarded and it is called again when it did not finish. */
export type CarryOver = (records: Iterable<Version1Record>, store: RecordStore) => Promise<void>;

const TRY_MS = 20;

/** Every record of a file of the first layout, in the order in which they were stored. The file is only read. */
export function* readVersion1(path: string): Generator<Version1Record, void, undefined> {
  const db = new DatabaseSync(path, { readOnly: true, timeout: TRY_MS });
  try {
    yield* recordsOf(db);
  } finally {
    db.close();
  }
}

/**
 * Takes a file of the first layout to the present one, with `carry`; does nothing to any other.
 *
 * The new file is made beside the old one, which is locked meanwhile, and takes its place in one step; the old one is kept as
 * `<path>.v1`. A process that is killed in between leaves the old file in its place, and the next one begins anew.
 * @throws EtudeError MEMORY_UNAVAILABLE while other processes have the old file open
 */
export async function carryOver(options: FileOptions, carry: CarryOver, open: (path: string) => Promise<RecordStore>): Promise<void> {
  const { path } = options;
  const old = await patiently(options, () => lockVersion1(path));
  if (old === null) return;
  const fresh = `${path}.v2`;
  try {
    for (const part of ['', '-wal', '-shm']) rmSync(`${fresh}${part}`, { force: true });
    const store = await open(fresh);
    try {
      await carry(recordsOf(old), store);
    } finally {
      await store.close();
    }
    putInPlace(path, fresh);
  } catch (error) {
    throw memoryError(error, path);
  } finally {
    old.close();
  }
}

/** Holds everybody else off until it is closed; null where the file is of another layout or not there. */
function lockVersion1(path: string): DatabaseSync | null {
  if (!existsSync(path)) return null;
  const { ino } = statSync(path);
  const db = new DatabaseSync(path, { timeout: TRY_MS });
  try {
    if (layoutOf(db) === 1 && leaveLog(db, path)) {
      db.exec('BEGIN EXCLUSIVE');
      // Another process may have put the new file in this one's place since it was opened.
      if (statSync(path).ino === ino) return db;
    }
  } catch (error) {
    db.close();
    throw error;
  }
  db.close();
  return null;
}

/** Moves everything from the write-ahead log into the file, so that the file alone is the memory. Not while others have it open. */
function leaveLog(db: DatabaseSync, path: string): true {
  try {
    if (db.prepare('PRAGMA journal_mode = DELETE').get()?.journal_mode === 'delete') return true;
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
  throw new EtudeError(
    'MEMORY_UNAVAILABLE',
    `the memory file ${path} has to be carried over to a new layout, and another process has it open; stop the services that use it first`,
  );
}

/** The name always leads to a whole file: first to the old one, then to the new one. */
function putInPlace(path: string, fresh: string): void {
  if (existsSync(`${fresh}-wal`)) throw new Error(`${fresh} was not closed`);
  sync(fresh);
  rmSync(`${path}.v1`, { force: true });
  linkSync(path, `${path}.v1`);
  renameSync(fresh, path);
  sync(dirname(path));
}

function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function* recordsOf(db: DatabaseSync): Generator<Version1Record, void, undefined> {
  for (const kind of ['transition', 'episode', 'fact', 'skill'] as const) {
    const rows = db.prepare(
      `SELECT row, tenant.name AS tenant, json FROM ${kind}_record JOIN tenant ON tenant.id = ${kind}_record.tenant ORDER BY row`,
    );
    for (const { row, tenant, json } of rows.iterate()) {
      const whole = kind === 'skill' ? withFingerprints(db, BigInt(Number(row)), String(json)) : String(json);
      yield { kind, tenant: String(tenant), json: whole };
    }
  }
  const applied = db.prepare(
    'SELECT tenant.name AS tenant, applied.kind AS what, applied.id AS id FROM applied JOIN tenant ON tenant.id = applied.tenant',
  );
  for (const { tenant, what, id } of applied.iterate()) {
    yield { kind: 'applied', tenant: String(tenant), what: String(what) as 'write' | 'facts' | 'use', id: String(id) };
  }
}

function withFingerprints(db: DatabaseSync, skill: bigint, json: string): string {
  const fingerprints = db.prepare('SELECT fingerprint FROM skill_fingerprint WHERE skill = ? ORDER BY row').all(skill);
  const record = JSON.parse(json) as Record<string, unknown>;
  return JSON.stringify({ ...record, fingerprints: fingerprints.map(({ fingerprint }) => fingerprint) });
}
