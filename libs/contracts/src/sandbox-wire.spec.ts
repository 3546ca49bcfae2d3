import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { ExecuteEventSchema } from './gen/etude/v1/sandboxes_pb.js';
import type { Display } from './sandbox.js';
import { richOutputMessage } from './sandbox-wire.js';

/** The rich output that a caller decodes. */
function received(display: Display) {
  const sent = create(ExecuteEventSchema, { event: { case: 'display', value: richOutputMessage(display) } });
  const { event } = fromBinary(ExecuteEventSchema, toBinary(ExecuteEventSchema, sent));
  if (event.case !== 'display') throw new Error('no display arrived');
  const json = Object.entries(event.value.json).map(([type, value]) => [type, toJson(ValueSchema, value)]);
  return { text: event.value.text, json: Object.fromEntries(json) as object };
}

function nested(levels: number, wrap: (inner: unknown) => unknown): Display[string] {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value as Display[string];
}

describe('a rich output on the wire', () => {
  it.each([
    ['lists', (inner: unknown) => [inner]],
    ['objects', (inner: unknown) => ({ a: inner })],
  ])('keeps JSON with as many nested %s as a caller can decode', (_, wrap) => {
    const data = nested(30, wrap);
    expect(received({ 'text/plain': 'it', 'application/json': data })).toEqual({
      text: { 'text/plain': 'it' },
      json: { 'application/json': data },
    });
  });

  it('replaces JSON that is nested too deeply by a note', () => {
    const data = nested(400, (inner) => [inner]);
    const { text, json } = received({ 'text/plain': 'it', 'text/html': '<b>it</b>', 'application/json': data });
    expect(json).toEqual({});
    expect(text).toEqual({ 'text/plain': 'it\n(its application/json is nested more than 30 deep)', 'text/html': '<b>it</b>' });
  });
});
