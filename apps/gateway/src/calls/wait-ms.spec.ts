import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { waitMs } from './caller.js';

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
