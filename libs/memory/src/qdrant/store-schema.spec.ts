import type { QdrantClient } from '@qdrant/js-client-rest';
import { expect, it } from 'vitest';
import { ensureCollection } from './store-schema.js';
import type { QdrantServer } from './qdrant-server.js';

it.each([
  [3, { vectors: {}, replication_factor: 3, write_consistency_factor: 3 }],
  [undefined, { vectors: {} }],
])('makes a collection with %s copies, all of which a write waits for', async (replicas, expected) => {
  const made: unknown[] = [];
  const client = {
    collectionExists: () => Promise.resolve({ exists: false }),
    createCollection: (_: string, config: object) => Promise.resolve(void made.push(config)),
  };
  const server = { replicas, ask: (_: string, request: (client: QdrantClient) => unknown) => request(client as unknown as QdrantClient) };
  await ensureCollection(server as unknown as QdrantServer, 'facts');
  expect(made).toEqual([expected]);
});
