import { type Duration, type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/** Whole milliseconds, rounded up so that a tiny duration is not taken for none; undefined where unset or zero. */
export function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (!duration) return undefined;
  const ms = Number(duration.seconds) * 1_000 + Math.ceil(duration.nanos / 1_000_000);
  return ms === 0 && duration.nanos === 0 ? undefined : ms;
}

/** 0001-01-01 and the end of 9999: what a Timestamp can say. */
const TIME_MIN_MS = -62_135_596_800_000;
const TIME_MAX_MS = 253_402_300_799_999;

/** Of ms since 1970. What no Timestamp can say becomes the nearest one: what is stored can be shown, whatever it holds. */
export function timestampAt(ms: number): Timestamp {
  return timestampFromMs(Number.isNaN(ms) ? 0 : Math.trunc(Math.min(TIME_MAX_MS, Math.max(TIME_MIN_MS, ms))));
}

export const timestampOf = (ms: number | null): Timestamp | undefined => (ms === null ? undefined : timestampAt(ms));
