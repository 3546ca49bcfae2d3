import { findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { MemoryPlace } from '../src/open-memory.js';
import { temporaryDirectory } from './temporary-memory.js';
import { carried, upkeepUnderKills } from './upkeep-kills.js';

const source = await findQdrant();
const START_TIMEOUT_MS = 90_000;

function inFile(): MemoryPlace {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return { adapter: 'sqlite', path: join(path, 'memory.db') };
}

describe.skipIf(source.kind === 'none')('upkeep', () => {
  let qdrant: TestQdrant;
  beforeAll(async () => {
    qdrant = await startQdrant(source);
  }, START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  const inQdrant = (): MemoryPlace => {
    const collectionPrefix = `u${randomUUID().slice(0, 8)}`;
    onTestFinished(() => qdrant.drop(collectionPrefix));
    const { url, apiKey, caPath } = qdrant;
    return { adapter: 'qdrant', url, apiKey, caPath, collectionPrefix, timeoutMs: 30_000 };
  };
  upkeepUnderKills('qdrant', inQdrant, { records: 12 });

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
