import { EtudeError } from '@etude/contracts/errors';
import { describe } from 'vitest';
import { chatModelConformance, type ConformanceAnswer } from './chat-model-conformance.js';
import { type FakeAnswer, FakeChatModel, neverAnswers } from './fake-chat-model.js';
import { FakeJournalStore } from './fake-journal.js';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { FakeWorkSandboxes } from './fake-work-sandboxes.js';
import { journalConformance } from './journal-conformance.js';
import { proceduralMemoryConformance } from './procedural-memory-conformance.js';
import { workSandboxesConformance } from './work-sandboxes-conformance.js';

function fakeAnswer({ text = '', cut, refused, hangs }: ConformanceAnswer): FakeAnswer {
  if (refused) return new EtudeError('MODEL_REFUSED', 'the model refuses this');
  if (hangs) return neverAnswers;
  return { text, ...(cut ? { finishReason: 'length' as const } : {}) };
}

describe('the fakes', () => {
  chatModelConformance(async (answers) => ({ model: new FakeChatModel(answers.map(fakeAnswer)) }));
  proceduralMemoryConformance(async () => ({ memory: new FakeProceduralMemory({ now: Date.now }) }));
  workSandboxesConformance(async () => {
    const workSandboxes = new FakeWorkSandboxes();
    return { workSandboxes, close: async () => workSandboxes.close() };
  });
  journalConformance(async () => {
    const store = new FakeJournalStore();
    return {
      open: async () => store.open(),
      openLearning: async () => store.openLearning(),
      events: async () => store.events,
      task: async () => store.task,
      cancel: async () => store.cancel(),
    };
  });
});
