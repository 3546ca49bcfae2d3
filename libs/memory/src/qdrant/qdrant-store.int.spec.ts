import { onTestFinished } from 'vitest';
import { describeOnQdrant } from '../../test/describe-on-qdrant.js';
import { openOnQdrant } from '../../test/qdrant-under-test.js';
import { recordStoreConformance } from '../../test/record-store-conformance.js';
import { recordStoreSearchConformance } from '../../test/record-store-search-conformance.js';

describeOnQdrant({ name: 'a store of records' }, (server) => {
  recordStoreConformance('qdrant', openOnQdrant(server));
});

const since119 = { kinds: ['stand-in'], options: () => ({ version: '1.20.0' }) } as const;
describeOnQdrant({ name: 'one that counts words of one tenant itself, as servers since 1.19 do', ...since119 }, (server) => {
  const open = openOnQdrant(server);
  recordStoreSearchConformance(async () => {
    const made = await open();
    onTestFinished(() => made.close());
    return made;
  });
});
