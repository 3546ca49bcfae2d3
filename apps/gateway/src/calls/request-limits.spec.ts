import fc from 'fast-check';
import { create, toBinary } from '@bufbuild/protobuf';
import { ImportMemoryRequestSchema, Memory, StoreEpisodeRequestSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { expect, it } from 'vitest';
import { sizeProblem } from './request-limits.js';

const { method: call } = Memory;

function bytesWith(count: number): Uint8Array {
  const outcomes = Array.from({ length: count }, () => ({}));
  return toBinary(
    StoreEpisodeRequestSchema,
    create(StoreEpisodeRequestSchema, { context: ['fog'], reflection: 'x'.repeat(300), outcomes }),
  );
}

it('counts the entries of each list before anything is decoded', () => {
  expect(sizeProblem(call.storeEpisode, bytesWith(20_000))).toBeNull();
  expect(sizeProblem(call.storeEpisode, bytesWith(20_001))).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('outcomes: must not have more than 20000 entries; it has 20001'),
  });
});

it('has a size for each call', () => {
  const lines = toBinary(ImportMemoryRequestSchema, create(ImportMemoryRequestSchema, { lines: ['x'.repeat(2_000_000)] }));
  expect(sizeProblem(call.importMemory, lines)).toBeNull();
  expect(sizeProblem(call.storeFact, lines)).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  expect(sizeProblem(Tasks.method.submitTask, lines)).toBeNull();
});

it('ends with any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      expect(sizeProblem(call.storeEpisode, bytes)).toBeNull();
    }),
  );
});
