import { randomUUID } from 'node:crypto';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import type { Embedder } from '@etude/domain/ports/model';
import { expect, it, onTestFinished } from 'vitest';
import { type MemoryPlace, modelOf, openMemory, openStore } from '../src/open-memory.js';
import { modelOfFile } from '../src/sqlite/file-upkeep.js';
import { copyRecords } from '../src/upkeep/record-upkeep.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { qdrantPlace } from './qdrant-under-test.js';
import { placeInFile } from './temporary-memory.js';
import { exportOf, live, otherEmbedder, TENANT } from './upkeep-samples.js';

const embedder = new LexicalEmbedder();

async function copy(from: MemoryPlace, to: MemoryPlace, reads: Embedder = embedder, writes: Embedder = embedder): Promise<void> {
  const [source, target] = [await openStore(from, modelOf(reads)), await openStore(to, modelOf(writes))];
  await copyRecords(source, target, writes, () => undefined);
  await source.close();
  await target.close();
}

describeOnQdrant({ name: 'a copy of all records' }, (server) => {
  it('goes to Qdrant and back with notes of applied writes, and is searched by another model', { timeout: 60_000 }, async () => {
    const collectionPrefix = `c${randomUUID().slice(0, 8)}`;
    onTestFinished(() => server().drop(collectionPrefix));
    const [given, middle, back] = [placeInFile(), qdrantPlace(server(), collectionPrefix), placeInFile()];
    const memory = await openMemory({ store: given, embedder });
    await live(memory, 'ann', '1');
    await live(memory, 'bob', '2');
    const lines = (await exportOf(memory)).toSorted();
    await memory.close();
    await copy(given, middle);
    await copy(middle, back, embedder, otherEmbedder());
    expect(modelOfFile(back.path)).toMatchObject({ name: 'other' });
    const restored = await openMemory({ store: back, embedder: otherEmbedder() });
    onTestFinished(() => restored.close());
    await live(restored, 'ann', '1');
    expect((await exportOf(restored)).toSorted()).toEqual(lines);
    expect(await restored.store.count({ tenant: TENANT }, 'episodic', { kinds: ['applied'] })).toBeGreaterThan(0);
  });
});
