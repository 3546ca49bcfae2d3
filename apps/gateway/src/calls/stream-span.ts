import { AsyncLocalStorage } from 'node:async_hooks';
import type { SpanStart, Tracing } from '@etude/contracts/tracing';

/** The answers of a stream as one span. It is the current one while an answer is made, but not while the stream's reader works. */
export async function* streamSpan<T>(
  tracing: Tracing,
  name: string,
  start: SpanStart,
  answers: () => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const over = Promise.withResolvers<void>();
  let inSpan = AsyncLocalStorage.snapshot();
  const span = tracing.span(name, start, () => {
    inSpan = AsyncLocalStorage.snapshot();
    return over.promise;
  });
  const source = inSpan(answers);
  try {
    for (let next = await inSpan(() => source.next()); !next.done; next = await inSpan(() => source.next())) yield next.value;
  } catch (error) {
    over.reject(error);
    throw error;
  } finally {
    await inSpan(() => source.return(undefined));
    over.resolve();
    await span.catch(() => undefined);
  }
}
