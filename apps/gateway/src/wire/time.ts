import { type Duration, type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalidField } from './validation.js';

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

const STANDARD_MS = 60_000;
const MAX_MS = 3_600_000;
/** Left of a deadline for the answer itself to arrive in, on a busy machine too; of short ones, a tenth. */
const DEADLINE_MARGIN_MS = 1_000;

/**
 * How long to wait for a task, in ms: what was asked for, but never past the call's deadline, so that the caller gets
 * the task as it stands and no DEADLINE_EXCEEDED.
 *
 * @param untilDeadlineMs Infinity where there is none
 * @throws EtudeError INVALID_ARGUMENT
 */
export function waitMs(timeout: Duration | undefined, untilDeadlineMs: number): number {
  const asked = millisecondsOf(timeout) ?? STANDARD_MS;
  if (asked <= 0 || asked > MAX_MS)
    throw invalidField('timeout', `must be more than 0 and at most ${MAX_MS / 1_000} s (0 means the default of ${STANDARD_MS / 1_000} s)`);
  const margin = Math.min(DEADLINE_MARGIN_MS, untilDeadlineMs / 10);
  return Math.max(0, Math.min(asked, untilDeadlineMs - margin));
}
