import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { load } from 'sqlite-vec';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { directoryOfTest } from './temporary-memory.js';
import { ACME, insert, recordOf, SAMPLE_MODEL, searchable, vectorOf } from './record-store-samples.js';
import { temporaryStore } from './temporary-store.js';
import type { Change, RecordStore } from '../src/record-store.js';
import { vectorCode } from '../src/sqlite/vector-code.js';

const model = SAMPLE_MODEL;

async function opened(options: Parameters<typeof temporaryStore>[0] = {}) {
  const made = await temporaryStore(options);
  onTestFinished(() => made.close());
  return made;
}

/** A connection of another program to the file. */
function stranger(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { allowExtension: true });
  load(db);
  onTestFinished(() => db.close());
  return db;
}

describe('a SQLite store’s file', () => {
  it('is created with its directory, readable by its owner only', async () => {
    const path = join(directoryOfTest(), 'a', 'b', 'memory.db');
    const store = await openSqliteStore({ path, model });
    await store.check();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(store.diskBytes()).toBeGreaterThan(0);
    await store.close();
  });

  it('waits for the disk at each commit but an unsynced one, even one that was refused', async () => {
    const { store } = await opened();
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec');
    onTestFinished(() => exec.mockRestore());
    const synced = () => {
      const said = exec.mock.calls.map(([sql]) => sql).filter((sql) => !sql.startsWith('BEGIN'));
      exec.mockClear();
      return said;
    };
    await store.write('acme', [insert(recordOf())]);
    expect(synced()).toEqual(['COMMIT']);
    await store.write('acme', [insert(recordOf({ key: 'k2' }))], { unsynced: true });
    expect(synced()).toEqual(['PRAGMA synchronous = NORMAL', 'COMMIT', 'PRAGMA synchronous = FULL']);
    await store.write('acme', [{ do: 'update', record: recordOf(), revision: 7 }], { unsynced: true });
    expect(synced()).toEqual(['PRAGMA synchronous = NORMAL', 'ROLLBACK', 'PRAGMA synchronous = FULL']);
  });

  it('is refused from a later version, with the way out', async () => {
    const { store, path } = await opened();
    await store.close();
    stranger(path).exec('PRAGMA user_version = 2');
    const message = expect.stringMatching(/later version of Etude.*layout 2.*reads 1.*Stop every service.*install/s);
    await expect(openSqliteStore({ path, model })).rejects.toMatchObject({ code: 'MEMORY_VERSION', message });
  });

  it('is refused if it belongs to another program or is no database', async () => {
    const at = directoryOfTest();
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
    const changes = Array.from({ length: 200 }, (_, i) => searchable({ key: `k${i}` }, `text ${i}`, 1));
    await store.write('acme', changes);
    await store.close();
    truncateSync(path, 8_192);
    const use = openSqliteStore({ path, model }).then(async (damaged) => {
      onTestFinished(() => damaged.close());
      return damaged.search(ACME, 'semantic', { vector: vectorOf({ 1: 1 }), text: 'text', limit: 5 });
    });
    await expect(use).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE', message: expect.stringMatching(/damaged.*backup/) });
  });

  it('is retried while it is locked, up to the time limit', async () => {
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

  it('stores no part of a write that exceeds the size limit', async () => {
    const { store } = await opened({ sizeMaxMiB: 1 });
    await store.write('acme', [searchable({ key: 'first' }, 'first', 1)]);
    const large = insert(recordOf({ key: 'large', text: 'x'.repeat(2_000_000) }), { text: 'large', vector: vectorOf({ 2: 1 }) });
    await expect(store.write('acme', [searchable({ key: 'beside' }, 'beside', 3), large])).rejects.toMatchObject({
      code: 'MEMORY_FULL',
      message: expect.stringContaining('free space'),
    });
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(1);
    expect(await store.write('acme', [searchable({ key: 'small' }, 'small', 4)])).toEqual([true]);
    expect(await store.damage()).toEqual([]);
  });

  it.each([
    ['gone', (path: string) => rmSync(path)],
    ['replaced', (path: string, other: string) => renameSync(other, path)],
  ])('takes no write once it is %s', async (what, change) => {
    const [{ store, path }, other] = await Promise.all([opened(), opened()]);
    await other.store.close();
    change(path, other.path);
    const refused = { code: 'MEMORY_UNAVAILABLE', message: expect.stringContaining(what) as string };
    await expect(store.check()).rejects.toMatchObject(refused);
    await expect(store.write('acme', [searchable({ key: 'late' }, 'late', 1)])).rejects.toMatchObject(refused);
  });
});

const MARK = 'zanzibar';
const ANN = { tenant: 'acme', user: 'ann-zanzibar' };
const SECRET_VECTOR = vectorOf({ 0: 0.123, 1: 0.456, 2: -0.789, 3: 0.321, 4: 0.654, 5: 0.987, 6: -0.111, 7: 0.222 });

/** A record of the user ann with the mark in each of its parts. */
function secret(i: number): Change {
  const record = recordOf({
    key: `${MARK}-key-${i}`,
    scope: { tenant: 'acme', agent: 'coder', user: ANN.user },
    title: `${MARK} title`,
    text: `${MARK} text `.repeat(500),
    body: JSON.stringify({ text: `${MARK} body` }),
    sources: [`${MARK}-source`],
    fields: { category: `${MARK}-category`, fingerprint: [`${MARK}-f1`, `${MARK}-f2`] },
  });
  return { do: 'insert', record, indexed: [{ text: `${MARK}${'abc'[i % 3]} word`, vector: SECRET_VECTOR }] };
}

/** The traces of the secret in the files of a store. */
function traces(path: string): string[] {
  const vector = Buffer.from(SECRET_VECTOR.buffer);
  const code = vectorCode(SECRET_VECTOR);
  return ['', '-wal', '-shm', '-journal'].flatMap((part) => {
    const bytes = existsSync(`${path}${part}`) ? readFileSync(`${path}${part}`) : Buffer.alloc(0);
    const text = bytes.toString('latin1').toLowerCase();
    return [
      ...(text.includes(MARK) ? [`words in ${part || 'db'}`] : []),
      ...(bytes.includes(vector) ? [`vector in ${part || 'db'}`] : []),
      ...(bytes.includes(code) ? [`code in ${part || 'db'}`] : []),
    ];
  });
}

async function filled(store: RecordStore, secrets: number): Promise<void> {
  for (let i = 0; i < 5; i += 1) {
    const kept = Array.from({ length: 40 }, (_, j) => searchable({ key: `kept-${i}-${j}` }, `kept words ${i} ${j}`, j % 8));
    await store.write('acme', [...kept, ...Array.from({ length: secrets / 5 }, (_, j) => secret(i * 100 + j))]);
  }
}

describe('erasing from a SQLite store', () => {
  it('leaves no byte of removed records while others have the file open', async () => {
    const { store, second, path } = await opened({ lockWaitMs: 5_000 });
    const other = await second();
    await filled(store, 100);
    expect(traces(path).map((trace) => trace.split(' ')[0])).toEqual(expect.arrayContaining(['words', 'vector', 'code']));
    expect(await other.remove(ANN, 'semantic', {})).toBe(100);
    expect(await other.purge()).toHaveLength(3);
    expect(traces(path)).toEqual([]);
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(200);
    expect(await store.search(ACME, 'semantic', { vector: null, text: 'kept', limit: 500 })).toHaveLength(200);
    expect(await store.damage()).toEqual([]);
  });

  it('leaves no byte of replaced texts', async () => {
    const { store, path } = await opened({ lockWaitMs: 5_000 });
    await store.write('acme', [secret(0)]);
    const record = recordOf({ key: `${MARK}-key-0`.replace(MARK, 'x') });
    await store.write('acme', [{ do: 'insert', record, indexed: [{ text: `${MARK} words`, vector: SECRET_VECTOR }] }]);
    await store.remove(ANN, 'semantic', {});
    await store.write('acme', [{ do: 'replace', record, indexed: [{ text: 'other', vector: vectorOf({ 1: 1 }) }], revision: 1 }]);
    await store.purge();
    expect(traces(path)).toEqual([]);
  });

  it('leaves no byte of one record that was removed by its key', async () => {
    const { store, path } = await opened();
    await filled(store, 5);
    for (const keys of [[`${MARK}-key-0`], [`${MARK}-key-100`, `${MARK}-key-200`, `${MARK}-key-300`, `${MARK}-key-400`, 'other']])
      expect(await store.remove({ tenant: 'acme' }, 'semantic', { keys })).toBe(keys.length === 1 ? 1 : 4);
    await store.purge();
    expect(traces(path)).toEqual([]);
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(200);
  });

  it('fails while another process reads the old state, and succeeds after it', async () => {
    const { store, path } = await opened({ lockWaitMs: 200 });
    await filled(store, 10);
    const reader = new DatabaseSync(path);
    onTestFinished(() => reader.close());
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM record').get();
    await store.remove(ANN, 'semantic', {});
    await expect(store.purge()).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringMatching(/another process.*write-ahead log.*repeat/is),
    });
    reader.exec('COMMIT');
    await store.purge();
    expect(traces(path)).toEqual([]);
  });
});
