import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { expect, it } from 'vitest';
import { sizeProblem } from './request-limits.js';

it('has a size for each call', () => {
  const bytes = new Uint8Array(2_000_000);
  expect(sizeProblem(Memory.method.importMemory, bytes)).toBeNull();
  expect(sizeProblem(Memory.method.storeFact, bytes)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  expect(sizeProblem(Tasks.method.submitTask, bytes)).toBeNull();
});
