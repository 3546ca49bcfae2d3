/**
 * Why a running job's signal aborts without anybody having asked to stop the work itself. The job goes on elsewhere, so what
 * was started for it under an id (an execution) must be left running for whoever comes next.
 */
export type LeaseEnd = 'shutdown' | 'lost';

/** `name` is AbortError, as for every abort. */
export class LeaseEnded extends Error {
  override readonly name = 'AbortError';
  constructor(readonly lease: LeaseEnd) {
    super(
      lease === 'shutdown'
        ? 'this worker is shutting down; the job goes on elsewhere'
        : 'another worker may hold this job now; it was not renewed in time',
    );
  }
}

/** null where the abort was asked for: a cancel, a deadline. Survives `AbortSignal.any`, which keeps the reason. */
export function leaseEndOf(signal: AbortSignal): LeaseEnd | null {
  const lease = (signal.reason as { lease?: unknown } | null | undefined)?.lease;
  return signal.aborted && (lease === 'shutdown' || lease === 'lost') ? lease : null;
}

/** What a wait rejects with when its signal aborts: always of the name AbortError. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  const error = new Error('aborted', { cause: reason });
  error.name = 'AbortError';
  return error;
}
