import { chmodSync, mkdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { load } from 'sqlite-vec';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { temporaryDirectory } from './temporary-memory.js';
import { ACME, insert, recordOf, SAMPLE_MODEL, searchable, vectorOf } from './record-store-samples.js';
import { temporaryStore } from './temporary-store.js';

const model = SAMPLE_MODEL;

async function opened(options: Parameters<typeof temporaryStore>[0] = {}) {
  const made = await temporaryStore(options);
  onTestFinished(() => made.close());
  return made;
}

function directory(): string {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return path;
}

/** Another program that has the file open. */
function stranger(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { allowExtension: true });
  load(db);
  onTestFinished(() => db.close());
  return db;
}

describe('a SQLite store’s file', () => {
  it('is created with its directory, for its owner alone', async () => {
    const path = join(directory(), 'a', 'b', 'memory.db');
    const store = await openSqliteStore({ path, model });
    await store.check();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await store.size()).diskBytes).toBeGreaterThan(0);
    await store.close();
  });

  it('is refused from a later version, and from before the first release, with the way out', async () => {
    for (const [header, way] of [
      ['user_version = 2', /later version of Etude.*layout 2.*reads 1.*Stop every service.*install/s],
      ['application_id = 1165260132', /before the first release.*Export it.*start anew/s],
    ] as const) {
      const { store, path } = await opened();
      await store.close();
      stranger(path).exec(`PRAGMA ${header}`);
      await expect(openSqliteStore({ path, model })).rejects.toMatchObject({ code: 'MEMORY_VERSION', message: expect.stringMatching(way) });
    }
  });

  it('is refused where it belongs to another program, or is no database', async () => {
    const at = directory();
    stranger(join(at, 'other.db')).exec('CREATE TABLE t (x)');
    writeFileSync(join(at, 'text'), 'not a database, but long enough to be taken for one at first sight'.repeat(20));
    mkdirSync(join(at, 'dir'));
    for (const name of ['other.db', 'text', 'dir', 'text/memory.db']) {
      const path = join(at, name);
      await expect(openSqliteStore({ path, model })).rejects.toMatchObject({
        code: 'MEMORY_UNAVAILABLE',
        message: expect.stringContaining(path),
      });
    }
  });

  it('is refused when it is truncated', async () => {
    const { store, path } = await opened();
    await store.write(
      'acme',
      Array.from({ length: 200 }, (_, i) => searchable({ key: `k${i}` }, `text ${i}`, 1)),
    );
    await store.close();
    truncateSync(path, 8_192);
    const use = openSqliteStore({ path, model }).then(async (damaged) => {
      onTestFinished(() => damaged.close());
      return damaged.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'text', limit: 5 });
    });
    await expect(use).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE', message: expect.stringMatching(/damaged.*backup/) });
  });

  it.skipIf(process.getuid?.() === 0)('is refused where it may not be written', async () => {
    const { store, path } = await opened();
    await store.close();
    chmodSync(path, 0o400);
    await expect(openSqliteStore({ path, model })).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });

  it('is waited for while it is locked, within a bound', async () => {
    const { store, path } = await opened({ lockWaitMs: 150 });
    const other = stranger(path);
    other.exec('BEGIN IMMEDIATE');
    await expect(store.write('acme', [insert(recordOf())])).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringContaining('locked'),
    });
    expect(await store.load(ACME, 'semantic', 'fact', ['k1'])).toEqual([]);
    const waiting = store.write('acme', [insert(recordOf())]);
    other.exec('COMMIT');
    expect(await waiting).toEqual([true]);
  });

  it('keeps nothing of a write for which there is no room', async () => {
    const { store } = await opened({ sizeMaxMiB: 1 });
    await store.write('acme', [searchable({ key: 'first' }, 'first', 1)]);
    const large = insert(recordOf({ key: 'large', text: 'x'.repeat(2_000_000) }), { text: 'large', vector: vectorOf({ 2: 1 }) });
    await expect(store.write('acme', [searchable({ key: 'beside' }, 'beside', 3), large])).rejects.toMatchObject({
      code: 'MEMORY_FULL',
      message: expect.stringContaining('free space'),
    });
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(1);
    expect(await store.write('acme', [searchable({ key: 'small' }, 'small', 4)])).toEqual([true]);
    expect(await store.reconcile()).toMatchObject({ repaired: [], problems: [] });
  });

  it('looks a record up by each of more values than are written at once', async () => {
    const { store } = await opened();
    const names = Array.from({ length: 19 }, (_, i) => `called_${i}`);
    await store.write('acme', [insert(recordOf({ key: 'calls', fields: { id: 'calls', skill: names } }))]);
    for (const skill of names) expect(await store.count({ tenant: 'acme' }, 'semantic', { where: { skill } })).toBe(1);
  });

  it('finds the codes of one tenant by an index', async () => {
    const { store, path } = await opened();
    await store.write('acme', [searchable({ key: 'before' }, 'before', 1)]);
    await store.close();
    const [{ detail } = {}] = stranger(path)
      .prepare('EXPLAIN QUERY PLAN SELECT chunk_id, validity, rowids FROM vector_code_1_chunks WHERE partition00 = 1 AND partition01 = 2')
      .all();
    expect(detail).toContain('vector_code_1_by_layer');
  });

  it('is missed when it is gone', async () => {
    const { store, path } = await opened();
    rmSync(path);
    const gone = { code: 'MEMORY_UNAVAILABLE', message: expect.stringContaining('gone') as string };
    await expect(store.check()).rejects.toMatchObject(gone);
    await expect(store.write('acme', [searchable({ key: 'late' }, 'late', 1)])).rejects.toMatchObject(gone);
    await expect(openSqliteStore({ path, model })).rejects.toMatchObject(gone);
  });

  it('takes no write once another one has its name', async () => {
    const [{ store, path }, other] = await Promise.all([opened(), opened()]);
    await other.store.close();
    renameSync(other.path, path);
    const replaced = { code: 'MEMORY_UNAVAILABLE', message: expect.stringContaining('replaced') as string };
    await expect(store.check()).rejects.toMatchObject(replaced);
    await expect(store.write('acme', [searchable({ key: 'late' }, 'late', 1)])).rejects.toMatchObject(replaced);
  });

  it('is not taken for damaged by one that has not seen what another wrote', async () => {
    const { store, path } = await opened();
    const other = await openSqliteStore({ path, model });
    onTestFinished(() => other.close());
    for (let round = 0; round < 4; round += 1) {
      expect(await store.reconcile()).toMatchObject({ problems: [] });
      for (let i = 0; i < 24; i += 1)
        await other.write('acme', [searchable({ key: `${round}.${i}` }, `words of ${round} and ${i}`, i % 8)]);
      expect(await store.reconcile()).toMatchObject({ problems: [] });
    }
  });

  it('is mended where its parts do not fit together', async () => {
    const { store, path } = await opened();
    await store.write(
      'acme',
      ['a', 'b', 'c', 'd'].map((key, i) => searchable({ key, fields: { id: key } }, `words ${key}`, i)),
    );
    const cues = [0, 1, 2].map((i) => ({ text: `cue ${i}`, vector: vectorOf({ [i]: 1 }) }));
    await store.write(
      'acme',
      ['e', 'f'].map((key) => insert(recordOf({ key }), ...cues)),
    );
    const damage = stranger(path);
    damage.exec(`DELETE FROM record WHERE record_key = 'a'; DELETE FROM vector_1 WHERE id >> 10 = 2;
      DELETE FROM vector_1 WHERE id = 5 << 10; DELETE FROM vector_code_1 WHERE id = (6 << 10) + 1;
      DELETE FROM record_words WHERE rowid = 3; UPDATE layer_size SET worded = 9`);
    const report = await store.reconcile();
    expect(report.repaired).toEqual([
      'removed 1 texts of records that are not there',
      'removed 1 look-up values of records that are not there',
      'removed 1 notes on vectors of records that are not there',
      'removed the words of 1 records that are not there or have none',
      expect.stringContaining('3 records have lost vectors of sample-8; "etude memory reembed"'),
      'removed 8 vectors of sample-8 without a whole record',
      'counted the records of every layer anew',
    ]);
    expect(report.problems).toEqual([
      'the record "c" is not found by its words; store it again',
      expect.stringContaining('3 records have no vectors of sample-8; run "etude memory reembed"'),
    ]);
    for (const key of ['e', 'f']) {
      const vectors = cues.map(({ vector }) => vector);
      expect(await store.setVectors('acme', { ...recordOf({ key }), revision: 1 }, model.name, vectors)).toBe(true);
    }
    await store.setVectors('acme', { ...recordOf({ key: 'b' }), revision: 1 }, model.name, [vectorOf({ 1: 1 })]);
    const again = [{ text: 'words c', vector: vectorOf({ 2: 1 }) }];
    await store.write('acme', [{ do: 'replace', record: recordOf({ key: 'c' }), indexed: again, revision: 1 }]);
    expect(await store.reconcile()).toMatchObject({ repaired: [], problems: [] });
  });
});
