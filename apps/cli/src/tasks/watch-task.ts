import { setTimeout as sleep } from 'node:timers/promises';
import type { Task, TaskEvent } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isCancelled, isUnavailable } from '../grpc-errors.js';

/** How long a gateway may stay away before a watch gives up. */
export const AWAY_MAX_MS = 120_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 3_000;

export interface WatchOptions {
  readonly signal: AbortSignal;
  /** Of the last event that was seen; '' for everything. */
  readonly resumeToken?: string;
  readonly awayMaxMs?: number;
  /** Called when the connection broke, and with null once events come again. */
  readonly onAway?: (error: Error | null) => void;
}

/**
 * Every event of a task until its `finished`. A connection that breaks is taken up again behind the last event.
 *
 * @throws the ServiceError of the last try once the gateway was away for `awayMaxMs`; an AbortError on `signal`
 */
export async function* watchTask(gateway: Gateway, name: string, options: WatchOptions): AsyncGenerator<TaskEvent> {
  const { signal, onAway, awayMaxMs = AWAY_MAX_MS } = options;
  let resumeToken = options.resumeToken ?? '';
  let waitMs = FIRST_WAIT_MS;
  let awaySince: number | null = null;
  for (;;) {
    let broken: Error;
    try {
      for await (const event of gateway.tasks.watchTask({ name, resumeToken }, { signal })) {
        if (awaySince !== null) onAway?.(null);
        awaySince = null;
        waitMs = FIRST_WAIT_MS;
        yield event;
        resumeToken = event.resumeToken;
        if (event.event.case === 'finished') return;
      }
      broken = new Error('the gateway ended the watch before the task was finished');
    } catch (error) {
      signal.throwIfAborted();
      if (!isUnavailable(error) && !isCancelled(error)) throw error;
      broken = error as Error;
    }
    if (awaySince === null) onAway?.(broken);
    awaySince ??= performance.now();
    if (performance.now() - awaySince > awayMaxMs) throw broken;
    await sleep(waitMs, undefined, { signal });
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** The finished task. Rides out a gateway that is away for a while. @throws as `watchTask` does */
export async function waitForTask(
  gateway: Gateway,
  name: string,
  signal: AbortSignal,
  onEvent: (event: TaskEvent) => void = () => undefined,
): Promise<Task> {
  for await (const event of watchTask(gateway, name, { signal })) {
    onEvent(event);
    if (event.event.case === 'finished' && event.event.value.task) return event.event.value.task;
  }
  throw new CliError(EXIT.internal, `the watch of ${name} ended without the finished task`);
}
