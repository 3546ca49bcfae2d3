import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe } from 'vitest';
import { recordStoreConformance } from '../../test/record-store-conformance.js';
import { SAMPLE_MODEL } from '../../test/record-store-samples.js';
import type { RecordStore, StoreOptions } from '../record-store.js';
import { openQdrantStore } from './qdrant-store.js';

const source = await findQdrant();
const VERSIONS = source.kind === 'stand-in' ? ['1.18.2', '1.20.0'] : [''];

describe.skipIf(source.kind === 'none').each(VERSIONS)('qdrant %s', (version) => {
  let qdrant: TestQdrant;
  beforeAll(async () => {
    console.log(`${describeQdrant(source)} ${version}`);
    qdrant = await startQdrant(source, { version });
  }, 90_000);
  afterAll(() => qdrant?.stop());

  recordStoreConformance(`qdrant ${version}`, async () => {
    const { url, apiKey, caPath } = qdrant;
    const collectionPrefix = `t${randomUUID().slice(0, 8)}`;
    const opened: RecordStore[] = [];
    const open = async (model: StoreOptions['model'] = SAMPLE_MODEL) => {
      const store = await openQdrantStore({ url, apiKey, caPath, collectionPrefix, timeoutMs: 30_000, model });
      opened.push(store);
      return store;
    };
    const store = await open();
    const close = async () => {
      for (const each of opened) await each.close();
      await qdrant.drop(collectionPrefix);
    };
    const reopen = async (model: StoreOptions['model'] = SAMPLE_MODEL) => {
      await opened.at(-1)?.close();
      return open(model);
    };
    return { store, reopen, second: open, close };
  });
});
