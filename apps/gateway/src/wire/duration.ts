import { type Duration, type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';

/** Whole milliseconds, rounded up so that a tiny duration is not taken for none; undefined where unset or zero. */
export function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (!duration) return undefined;
  const ms = Number(duration.seconds) * 1_000 + Math.ceil(duration.nanos / 1_000_000);
  return ms === 0 && duration.nanos === 0 ? undefined : ms;
}

export const timestampOf = (ms: number | null): Timestamp | undefined => (ms === null ? undefined : timestampFromMs(ms));
