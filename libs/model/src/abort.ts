/** What an aborted call throws, whatever the caller gave as reason; the reason is its `cause`. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  const error = new Error('the call of the model was aborted', { cause: reason });
  error.name = 'AbortError';
  return error;
}
