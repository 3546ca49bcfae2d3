import { EtudeError, errorCode } from '@etude/contracts/errors';
import { array, assert, asyncProperty, constantFrom, double, integer, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { never } from '../test/raw-server.js';
import { withRetries } from './retry.js';

const RETRY_POLICY = { attemptsMax: 6, waitTotalMaxMs: 120_000 };

const failing = (errors: Error[]) => async () => {
  const error = errors.shift();
  if (error) throw error;
  return 'answer';
};

describe('withRetries', () => {
  it('throws an error that is not retryable at once, unchanged', async () => {
    const refused = new EtudeError('MODEL_REFUSED', 'no');
    await expect(withRetries(failing([refused]), never(), RETRY_POLICY)).rejects.toBe(refused);
    const bug = new TypeError('x is not a function');
    await expect(withRetries(failing([bug]), never(), RETRY_POLICY)).rejects.toBe(bug);
  });

  it('stops waiting when it is aborted', async () => {
    const controller = new AbortController();
    const outcome = withRetries(
      async () => {
        setImmediate(() => controller.abort());
        throw new EtudeError('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 60_000 });
      },
      controller.signal,
      RETRY_POLICY,
    );
    await expect(outcome).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('keeps its limits of attempts and waits, and waits at least as long as the server asks, up to the maximum', async () => {
    const failure = record({
      code: constantFrom('MODEL_UNAVAILABLE', 'MODEL_RATE_LIMITED', 'MODEL_ANSWER_EMPTY', 'MODEL_ANSWER_TRUNCATED'),
      retryAfterMs: constantFrom(undefined, 0, 700, 90_000),
    });
    await assert(
      asyncProperty(
        array(failure, { maxLength: 12 }),
        integer({ min: 1, max: 8 }),
        double({ min: 0, max: 1, noNaN: true }),
        async (failures, attemptsMax, random) => {
          const waits: number[] = [];
          const errors = failures.map(
            ({ code, retryAfterMs }) =>
              new EtudeError(code as 'MODEL_UNAVAILABLE', 'x', retryAfterMs === undefined ? {} : { retryAfterMs }),
          );
          const policy = { ...RETRY_POLICY, attemptsMax };
          const left = [...errors];
          const outcome = await withRetries(failing(left), never(), policy, {
            sleep: async (ms) => void waits.push(ms),
            random: () => random,
          }).catch((error: unknown) => error);
          const made = errors.length - left.length + (outcome === 'answer' ? 1 : 0);
          expect(made).toBeLessThanOrEqual(attemptsMax);
          expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeLessThanOrEqual(policy.waitTotalMaxMs);
          waits.forEach((ms, i) => expect(ms).toBeGreaterThanOrEqual(Math.min(errors[i]?.details.retryAfterMs ?? 0, 60_000)));
          const said =
            outcome === 'answer' ? outcome : { code: errorCode(outcome), attempts: (outcome as EtudeError).details.metadata?.['attempts'] };
          expect(['answer', { code: errors[made - 1]?.code, attempts: String(made) }]).toContainEqual(said);
        },
      ),
    );
  });
});
