import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import type { CarryOver } from '../src/sqlite/version-1.js';
import { readVersion1 } from '../src/sqlite/version-1.js';
import { collect, insert, recordOf, SAMPLE_MODEL } from './record-store-samples.js';
import { startStoreProcess, type StoreProcess } from './store-processes.js';
import { temporaryDirectory } from './temporary-memory.js';
import { version1Records, writeVersion1 } from './version-1-file.js';

const TIMEOUT_MS = 180_000;
const ACME = { tenant: 'acme' };

function start(...args: string[]): StoreProcess {
  const started = startStoreProcess(...args);
  onTestFinished(() => void started.child.kill('SIGKILL'));
  return started;
}

function newPath(): string {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return join(path, 'memory.db');
}

async function opened(path: string, onVersion1?: Parameters<typeof openSqliteStore>[0]['onVersion1']): Promise<RecordStore> {
  const store = await openSqliteStore({ path, model: SAMPLE_MODEL, ...(onVersion1 ? { onVersion1 } : {}) });
  onTestFinished(() => store.close());
  return store;
}

describe('one SQLite store in several processes', () => {
  it('is created once, and takes three writers', { timeout: TIMEOUT_MS }, async () => {
    const path = newPath();
    const writers = ['a', 'b', 'c'].map((name) => start('writer', path, name));
    await Promise.all(writers.map((writer) => writer.printed(8)));
    for (const { child } of writers) child.kill('SIGKILL');
    const exits = await Promise.all(writers.map(({ exit }) => exit));
    expect(exits.map(({ stderr }) => stderr)).toEqual(['', '', '']);
    expect(await (await opened(path)).reconcile()).toMatchObject({ repaired: [], problems: [] });
  });

  it('has nothing half written, and all that was answered, when writers are killed', { timeout: TIMEOUT_MS }, async () => {
    const path = newPath();
    const answered: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      const writers = ['a', 'b'].map((name) => start('writer', path, `${name}${round}`));
      await Promise.all(writers.map((writer) => writer.printed(3 + round)));
      for (const { child } of writers) child.kill('SIGKILL');
      await Promise.all(writers.map(({ exit }) => exit));
      answered.push(...writers.flatMap(({ lines }) => lines.slice(2)));
      const store = await opened(path);
      expect(await store.reconcile()).toMatchObject({ repaired: [], problems: [] });
    }
    const all = new Map((await collect((await opened(path)).each(ACME, 'semantic', {}))).map((record) => [record.key, record]));
    expect(answered.length).toBeGreaterThan(20);
    for (const key of answered) {
      expect([all.get(`${key}-0`), all.get(`${key}-1`)]).toMatchObject([
        { body: 'second', revision: 2 },
        { body: 'second', revision: 2 },
      ]);
      expect(all.has(`${key}-2`)).toBe(false);
    }
  });
});

const carry: CarryOver = async (records, store) => {
  let i = 0;
  for (const record of records) {
    const scope = { tenant: record.tenant, agent: 'coder', user: null };
    await store.write(record.tenant, [insert(recordOf({ key: `v1-${(i += 1)}`, body: JSON.stringify(record), scope }))]);
  }
};

async function bodies(store: RecordStore): Promise<string[]> {
  const all = [...(await collect(store.each(ACME, 'semantic', {}))), ...(await collect(store.each({ tenant: 'beta' }, 'semantic', {})))];
  return all.map(({ body }) => body).toSorted();
}

describe('a file of the first layout', () => {
  it('is carried over whole, and kept', async () => {
    const path = newPath();
    writeVersion1(path, 3);
    const expected = version1Records(3);
    expect([...readVersion1(path)]).toEqual(expected);
    const store = await opened(path, carry);
    expect(await bodies(store)).toEqual(expected.map((record) => JSON.stringify(record)).toSorted());
    expect([...readVersion1(`${path}.v1`)]).toEqual(expected);
    expect(existsSync(`${path}.v2`)).toBe(false);
    const again = await opened(path, () => Promise.reject(new Error('carried over twice')));
    expect(await bodies(again)).toHaveLength(expected.length);
  });

  it('stays as it was when carrying it over fails, or others use it', async () => {
    const path = newPath();
    writeVersion1(path, 3);
    await expect(opened(path, () => Promise.reject(new Error('no embedder')))).rejects.toThrow('no embedder');
    expect([...readVersion1(path)]).toEqual(version1Records(3));
    const other = new DatabaseSync(path);
    other.exec('PRAGMA journal_mode = WAL');
    other.prepare('SELECT 1 FROM tenant').get();
    await expect(opened(path, carry)).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringContaining('stop the services'),
    });
    other.close();
    expect(await (await opened(path, carry)).count(ACME, 'semantic', {})).toBeGreaterThan(0);
  });

  it('loses nothing when the process that carries it over is killed', { timeout: TIMEOUT_MS }, async () => {
    const path = newPath();
    writeVersion1(path, 20);
    for (const lines of [1, 2, 5, 20, 45, 61, 62, 63]) {
      const carrier = start('carrier', path);
      await carrier.printed(lines);
      carrier.child.kill('SIGKILL');
      await carrier.exit;
    }
    const store = await opened(path, carry);
    expect((await store.count(ACME, 'semantic', {})) + (await store.count({ tenant: 'beta' }, 'semantic', {}))).toBe(62);
    expect([...readVersion1(`${path}.v1`)]).toEqual(version1Records(20));
    expect(await store.reconcile()).toMatchObject({ repaired: [], problems: [] });
  });
});
