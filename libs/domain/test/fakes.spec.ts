import { EtudeError } from '@etude/contracts/errors';
import type { RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { describe } from 'vitest';
import { chatModelConformance, type ConformanceAnswer } from './chat-model-conformance.js';
import { type FakeAnswer, FakeChatModel, neverAnswers } from './fake-chat-model.js';
import { FakeJournalStore } from './fake-journal.js';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { FakeSandboxes } from './fake-sandboxes.js';
import { journalConformance } from './journal-conformance.js';
import { proceduralMemoryConformance } from './procedural-memory-conformance.js';
import { CONFORMANCE_RUNS, repeatsConformance, sandboxesConformance } from './sandboxes-conformance.js';

function fakeAnswer({ text = '', cut, refused, hangs }: ConformanceAnswer): FakeAnswer {
  if (refused) return new EtudeError('MODEL_REFUSED', 'the model refuses this');
  if (hangs) return neverAnswers;
  return { text, ...(cut ? { finishReason: 'length' as const } : {}) };
}

/** Returns what the suite expects of the run. A hanging run takes 200 ms, in which the caller aborts. */
async function play(run: SandboxRun): Promise<Partial<RunResult>> {
  const known = CONFORMANCE_RUNS.find((one) => JSON.stringify(one.run) === JSON.stringify(run));
  if (!known) throw new Error('the run is not in the list of the suite');
  if (known.hangs) await new Promise((resolve) => setTimeout(resolve, 200));
  return known.gives;
}

const sandboxes = async () => ({ sandboxes: new FakeSandboxes(play) });

describe('the fakes', () => {
  chatModelConformance(async (answers) => ({ model: new FakeChatModel(answers.map(fakeAnswer)) }));
  proceduralMemoryConformance(async () => ({ memory: new FakeProceduralMemory({ now: Date.now }) }));
  sandboxesConformance(sandboxes);
  repeatsConformance(sandboxes);
  journalConformance(async () => {
    const store = new FakeJournalStore();
    return {
      open: async () => store.open(),
      events: async () => store.events,
      task: async () => store.task,
      cancel: async () => store.cancel(),
    };
  });
});
