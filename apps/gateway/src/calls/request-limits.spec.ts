import fc from 'fast-check';
import { create, toBinary } from '@bufbuild/protobuf';
import { ImportMemoryRequestSchema, Memory, StoreEpisodeRequestSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { expect, it } from 'vitest';
import { sizeProblem } from './request-limits.js';

const { method: call } = Memory;

it('counts the entries of each list before anything is decoded', () => {
  const request = { context: ['fog'], reflection: 'x'.repeat(300), importance: 0.5, skillsUsed: [] as string[] };
  const bytesWith = (count: number) =>
    toBinary(
      StoreEpisodeRequestSchema,
      create(StoreEpisodeRequestSchema, { ...request, outcomes: Array.from({ length: count }, () => ({})) }),
    );
  expect(sizeProblem(call.storeEpisode, bytesWith(10_000))).toBeNull();
  expect(sizeProblem(call.storeEpisode, bytesWith(10_001))).toMatchObject({ code: 'INVALID_ARGUMENT' });
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
