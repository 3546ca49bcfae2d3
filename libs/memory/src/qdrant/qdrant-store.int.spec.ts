import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import { openOnQdrant } from '../../test/qdrant-under-test.js';
import { recordStoreConformance } from '../../test/record-store-conformance.js';
import { recordStoreSearchConformance } from '../../test/record-store-search-conformance.js';

const source = await findQdrant();
const START_TIMEOUT_MS = 90_000;
let qdrant: TestQdrant;

describe.skipIf(source.kind === 'none')('qdrant', () => {
  beforeAll(async () => {
    console.log(describeQdrant(source));
    qdrant = await startQdrant(source);
  }, START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  recordStoreConformance(
    'qdrant',
    openOnQdrant(() => qdrant),
  );
});

describe.skipIf(source.kind !== 'stand-in')('qdrant that counts words of one tenant itself, as servers since 1.19 do', () => {
  beforeAll(async () => {
    qdrant = await startQdrant(source, { version: '1.20.0' });
  }, START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  const open = openOnQdrant(() => qdrant);
  recordStoreSearchConformance(async () => {
    const made = await open();
    onTestFinished(() => made.close());
    return made;
  });
});
