import type { Duration } from '@bufbuild/protobuf/wkt';
import { millisecondsOf } from '../wire/duration.js';
import { invalidField } from '../wire/validation.js';

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
