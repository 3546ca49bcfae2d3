import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { MemoryPlace } from '../src/open-memory.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { qdrantPlace } from './qdrant-under-test.js';
import { temporaryDirectory } from './temporary-memory.js';
import { carried, upkeepUnderKills } from './upkeep-kills.js';

function inFile(): MemoryPlace {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return { adapter: 'sqlite', path: join(path, 'memory.db') };
}

describeOnQdrant({ name: 'upkeep' }, (server) => {
  const inQdrant = (): MemoryPlace => {
    const collectionPrefix = `u${randomUUID().slice(0, 8)}`;
    onTestFinished(() => server().drop(collectionPrefix));
    return qdrantPlace(server(), collectionPrefix);
  };
  upkeepUnderKills('qdrant', inQdrant, { records: 8 });

  it('carries memory from SQLite to Qdrant and back', { timeout: 120_000 }, async () => {
    for (const [from, to] of [
      [inFile(), inQdrant()],
      [inQdrant(), inFile()],
    ] as const) {
      const { given, back, restored } = await carried(from, to);
      expect(back).toEqual(given);
      expect(restored).toEqual([12, 12]);
    }
  });
});
