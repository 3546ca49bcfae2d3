import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { collect, SAMPLE_MODEL } from './record-store-samples.js';
import { startStoreProcess, type StoreProcess } from './store-processes.js';
import { temporaryDirectory } from './temporary-memory.js';

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

async function opened(path: string): Promise<RecordStore> {
  const store = await openSqliteStore({ path, model: SAMPLE_MODEL });
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
