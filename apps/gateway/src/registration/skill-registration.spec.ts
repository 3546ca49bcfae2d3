import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { skillOf } from '@etude/domain/testing/memory-records';
import { expect, it } from 'vitest';
import { SkillRegistration } from './skill-registration.js';

const found = skillOf({ status: 'active' });
const procedural = { versions: () => Promise.resolve([found]) } as unknown as ProceduralMemory;
const candidate = skillOf({ status: 'candidate' });

type Wait = (signal: AbortSignal) => Promise<unknown>;

/** A registration whose verifications end as `wait` does. */
function registration(wait: Wait): SkillRegistration {
  const producer = { addAndWait: (_queue: unknown, _payload: unknown, signal: AbortSignal) => wait(signal) };
  return new SkillRegistration({ producer } as never);
}

/** No worker verifies. */
const forever: Wait = (signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(Object.assign(new Error('aborted'), { name: 'AbortError' })), { once: true });
  });

const patience = (waitMs: number, signal = new AbortController().signal) => ({ waitMs, signal });

it('returns the current skill when the waiting time is over', async () => {
  expect((await registration(forever).settled(procedural, candidate, patience(10))).status).toBe('candidate');
});

it('stops waiting when the caller leaves', async () => {
  const gone = new AbortController();
  const settled = registration(forever).settled(procedural, candidate, patience(10_000, gone.signal));
  gone.abort(new Error('gone'));
  await expect(settled).rejects.toThrow('gone');
});
