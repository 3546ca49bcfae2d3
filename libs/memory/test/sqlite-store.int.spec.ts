import { recordStoreConformance } from './record-store-conformance.js';
import { temporaryStore } from './temporary-store.js';

recordStoreConformance('sqlite', () => temporaryStore());
