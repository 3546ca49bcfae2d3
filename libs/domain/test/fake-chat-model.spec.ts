import { EtudeError } from '@etude/contracts/errors';
import { describe } from 'vitest';
import { chatModelConformance } from './chat-model-conformance.js';
import type { ConformanceAnswer } from './chat-model-conformance.js';
import { FakeChatModel, neverAnswers } from './fake-chat-model.js';
import type { FakeAnswer } from './fake-chat-model.js';

function fakeAnswer({ text = '', cut, refused, hangs }: ConformanceAnswer): FakeAnswer {
  if (refused) return new EtudeError('MODEL_REFUSED', 'the model refuses this');
  if (hangs) return neverAnswers;
  return { text, ...(cut ? { finishReason: 'length' as const } : {}) };
}

describe('FakeChatModel', () => {
  chatModelConformance(async (answers) => ({ model: new FakeChatModel(answers.map(fakeAnswer)) }));
});
