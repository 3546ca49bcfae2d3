import { existsSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { ACME, BETA, insert, OTHER_MODEL, recordOf, vectorOf } from './record-store-samples.js';
import { startStoreProcess } from './store-processes.js';
import { temporaryStore } from './temporary-store.js';
import { backToVersion2 } from './version-2-file.js';

const TIMEOUT_MS = 120_000;

/** Of two tenants, with one and two vectors each, one of them archived. */
async function filled(store: RecordStore, records: number): Promise<void> {
  for (const tenant of ['acme', 'beta']) {
    const changes = Array.from({ length: records }, (_, i) => {
      const scope = { tenant, agent: i % 2 === 0 ? 'coder' : 'tester', user: i % 5 === 0 ? 'ann' : null };
      const record = recordOf({ key: `k${i}`, scope, createdAt: i, worth: (i % 10) / 10, shown: i !== 3 });
      const texts = [{ text: `words ${i}`, vector: vectorOf({ 1: 1, 2: i, 3: i % 7 }) }];
      return insert(record, ...texts, ...(i % 3 === 0 ? [{ text: 'more', vector: vectorOf({ [i % 8]: 1 }) }] : []));
    });
    await store.write(tenant, changes);
  }
}

async function answers(store: RecordStore) {
  const asked = [
    { scope: ACME, filter: {} },
    { scope: { ...ACME, agent: 'coder', user: 'ann' }, filter: { worthMin: 0.5 } },
    { scope: ACME, filter: { shown: false } },
    { scope: BETA, filter: { createdSince: 20 } },
  ];
  return Promise.all(
    asked.map(({ scope, filter }) =>
      store.search(scope, 'semantic', { vector: vectorOf({ 1: 1, 2: 9 }), text: 'words 9', limit: 20, ...filter }),
    ),
  );
}

function layoutAt(path: string): number {
  const db = new DatabaseSync(path);
  const layout = db.prepare('PRAGMA user_version').get()?.user_version;
  db.close();
  return Number(layout);
}

async function ofVersion2(records: number) {
  const made = await temporaryStore();
  onTestFinished(() => made.close());
  await filled(made.store, records);
  await made.store.addModel(OTHER_MODEL);
  const [other] = [vectorOf({ 1: 1 }, OTHER_MODEL.dimension)];
  await made.store.setVectors('acme', { ...recordOf({ key: 'k1' }), revision: 1 }, OTHER_MODEL.name, [other]);
  const expected = await answers(made.store);
  const report = await made.store.reconcile();
  await made.store.close();
  backToVersion2(made.path);
  return { ...made, expected, report };
}

it('answers from a file of the second layout what it did before, and has all of it', async () => {
  const { second, expected, report } = await ofVersion2(60);
  const store = await second();
  expect(await answers(store)).toEqual(expected);
  expect(await store.reconcile()).toEqual(report);
  expect(report).toMatchObject({ checked: { vectors: 161 }, repaired: [], problems: [] });
  expect(await store.models()).toHaveLength(2);
  await store.setModelReady(OTHER_MODEL.name);
  expect(await store.remove({ tenant: 'acme' }, 'semantic', {})).toBe(60);
  expect((await store.reconcile()).checked).toMatchObject({ vectors: 80 });
});

it('loses nothing of such a file when the process that opens it is killed', { timeout: TIMEOUT_MS }, async () => {
  const { path, second, expected } = await ofVersion2(1_500);
  const layouts: number[] = [];
  for (const later of [0, 20, 60, 120]) {
    const opener = startStoreProcess('carrier', path);
    onTestFinished(() => void opener.child.kill('SIGKILL'));
    const isOver = () => opener.lines.length > 1 || opener.child.exitCode !== null;
    while (!existsSync(`${path}-rewriting`) && !isOver()) await sleep(1);
    for (let turn = 0; turn < later && !isOver(); turn += 1) await sleep(1);
    opener.child.kill('SIGKILL');
    await opener.exit;
    layouts.push(layoutAt(path));
    rmSync(`${path}-rewriting`, { force: true });
  }
  expect(layouts[0]).toBe(2);
  const store = await second();
  expect(await answers(store)).toEqual(expected);
  expect(await store.reconcile()).toMatchObject({ repaired: [], problems: [] });
});

it('is taken to the new layout once by several processes that open it at the same time', { timeout: TIMEOUT_MS }, async () => {
  const { path, second, expected } = await ofVersion2(300);
  const openers = ['a', 'b', 'c'].map(() => startStoreProcess('carrier', path));
  for (const { child } of openers) onTestFinished(() => void child.kill('SIGKILL'));
  const exits = await Promise.all(openers.map(({ exit }) => exit));
  expect(exits).toEqual(exits.map(() => ({ code: 0, stderr: '' })));
  expect(await answers(await second())).toEqual(expected);
});
