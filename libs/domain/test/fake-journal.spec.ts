import { FakeJournalStore } from './fake-journal.js';
import { journalConformance } from './journal-conformance.js';

journalConformance(async () => {
  const store = new FakeJournalStore();
  return {
    open: async () => store.open(),
    events: async () => store.events,
    task: async () => store.task,
    cancel: async () => store.cancel(),
  };
});
