import fc from 'fast-check';
import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import { DurationSchema, type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { timestampAt } from '../wire/messages.js';
import { waitMs } from './caller.js';

const said = (time: Timestamp) => JSON.parse(toJsonString(TimestampSchema, create(TimestampSchema, time))) as string;

it('says every time that a caller can be told, and the nearest one for any other', () => {
  expect(said(timestampAt(1_767_225_600_001))).toBe('2026-01-01T00:00:00.001Z');
  expect(said(timestampAt(Number.MAX_SAFE_INTEGER))).toBe('9999-12-31T23:59:59.999Z');
  expect(said(timestampAt(-Infinity))).toBe('0001-01-01T00:00:00Z');
  expect(said(timestampAt(Number.NaN))).toBe('1970-01-01T00:00:00Z');
});

it('throws for no number, on either wire', () => {
  fc.assert(
    fc.property(fc.double(), (ms) => {
      expect(said(timestampAt(ms))).toMatch(/Z$/);
      toBinary(TimestampSchema, create(TimestampSchema, timestampAt(ms)));
    }),
  );
});

const seconds = (count: number) => create(DurationSchema, { seconds: BigInt(count) });

it('waits a minute where nothing is said', () => {
  expect(waitMs(undefined, Infinity)).toBe(60_000);
});

it('answers before the deadline of the call', () => {
  expect(waitMs(seconds(60), 20_000)).toBe(19_000);
  expect(waitMs(seconds(60), 100)).toBe(90);
});

it('never waits for less than nothing', () => {
  expect(waitMs(undefined, -5)).toBe(0);
});
