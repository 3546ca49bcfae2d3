import { describeOnQdrant } from '../../test/describe-on-qdrant.js';
import { openOnQdrant } from '../../test/qdrant-under-test.js';
import { recordStoreConformance } from '../../test/record-store-conformance.js';

describeOnQdrant({ name: 'a store of records' }, (server) => {
  recordStoreConformance('qdrant', openOnQdrant(server), 8);
});
