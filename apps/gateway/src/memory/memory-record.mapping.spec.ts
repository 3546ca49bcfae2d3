import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ListRecentEpisodesResponseSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { expect, it } from 'vitest';
import { recordMessage } from './memory-record.mapping.js';

const OWNER = { layer: 'episodic', kind: 'transition', scope: { tenant: 'acme', agent: 'scout', user: null }, createdAt: 0 } as const;

/** As whoever asked for it reads it. */
function received(fields: Readonly<Record<string, unknown>>) {
  const episodes = [recordMessage({ ...OWNER, id: 'e1', fields })];
  const bytes = toBinary(ListRecentEpisodesResponseSchema, create(ListRecentEpisodesResponseSchema, { episodes }));
  return fromBinary(ListRecentEpisodesResponseSchema, bytes).episodes[0]?.fields;
}

function nested(depth: number): unknown {
  return depth === 0 ? 'the deepest' : { deeper: nested(depth - 1) };
}

it.each([60, 2_000])('gives what is nested %i deep as JSON in a text, which decoders read', (depth) => {
  const fields = received({ summary: 'fog', outcomes: [nested(depth)] });
  expect(fields?.['summary']).toBe('fog');
  expect(JSON.stringify(fields)).toContain('the deepest');
});

it('gives everything else as it is', () => {
  const fields = { outcomes: [nested(24)] };
  expect(received({ ...fields, left: undefined })).toEqual(fields);
});
