import { existsSync, readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Change, RecordStore } from '../src/record-store.js';
import { vectorCode } from '../src/sqlite/vector-code.js';
import type { StoreUnderTest } from './record-store-conformance.js';
import { ACME, recordOf, searchable, vectorOf } from './record-store-samples.js';
import { temporaryStore } from './temporary-store.js';

const MARK = 'zanzibar';
const ANN = { tenant: 'acme', user: 'ann-zanzibar' };
/** Has unit length, like stored vectors. */
const SECRET_VECTOR = unit(vectorOf({ 0: 0.123, 1: 0.456, 2: -0.789, 3: 0.321, 4: 0.654, 5: 0.987, 6: -0.111, 7: 0.222 }));

function unit(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

async function opened(lockWaitMs = 5_000): Promise<StoreUnderTest & { path: string }> {
  const made = await temporaryStore({ lockWaitMs });
  onTestFinished(() => made.close());
  return made;
}

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
    await store.write(
      'acme',
      Array.from({ length: 40 }, (_, j) => searchable({ key: `kept-${i}-${j}` }, `kept words ${i} ${j}`, j % 8)),
    );
    await store.write(
      'acme',
      Array.from({ length: secrets / 5 }, (_, j) => secret(i * 100 + j)),
    );
  }
}

describe('erasing from a SQLite store', () => {
  it('leaves no byte of removed records while others have the file open', async () => {
    const { store, second, path } = await opened();
    const other = await second();
    await filled(store, 100);
    expect(traces(path).map((trace) => trace.split(' ')[0])).toEqual(expect.arrayContaining(['words', 'vector', 'code']));
    expect(await other.remove(ANN, 'semantic', {})).toBe(100);
    expect(await other.purge()).toHaveLength(3);
    expect(traces(path)).toEqual([]);
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(200);
    expect((await store.search(ACME, 'semantic', { vector: null, text: 'kept', limit: 500 })).words).toHaveLength(200);
    expect(await store.damage()).toEqual([]);
  });

  it('leaves no byte of replaced texts', async () => {
    const { store, path } = await opened();
    await store.write('acme', [secret(0)]);
    const record = recordOf({ key: `${MARK}-key-0`.replace(MARK, 'x') });
    await store.write('acme', [{ do: 'insert', record, indexed: [{ text: `${MARK} words`, vector: SECRET_VECTOR }] }]);
    await store.remove(ANN, 'semantic', {});
    await store.write('acme', [{ do: 'replace', record, indexed: [{ text: 'other', vector: vectorOf({ 1: 1 }) }], revision: 1 }]);
    await store.purge();
    expect(traces(path)).toEqual([]);
  });

  it('fails while another process reads the old state, and succeeds after it', async () => {
    const { store, path } = await opened(200);
    await filled(store, 10);
    const reader = new DatabaseSync(path);
    onTestFinished(() => reader.close());
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM record').get();
    await store.remove(ANN, 'semantic', {});
    await expect(store.purge()).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringMatching(/another process.*write-ahead log.*repeat/s),
    });
    reader.exec('COMMIT');
    await store.purge();
    expect(traces(path)).toEqual([]);
  });
});
