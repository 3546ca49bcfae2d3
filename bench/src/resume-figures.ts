import type { TestProcess } from '@etude/test-support/processes';
import type { TestStack } from '@etude/test-support/stack';
import { onlySteps, tasksClient } from './rollout-load.js';

/**
 * Seconds from SIGKILL of the worker that runs a task, with a standby that is ready, to the first step that the standby
 * journals. The standby starts after the task's first step, so that the victim holds the task for certain.
 */
async function resumeOnce(stack: TestStack, victim: TestProcess, i: number): Promise<{ seconds: number; standby: TestProcess }> {
  const tasks = tasksClient(stack);
  const submitted = await tasks.submitTask({ spec: { ...onlySteps(i, 100), prompt: `bench slow ${i}: say something` } });
  let standby: TestProcess | undefined;
  let killedAt = 0;
  let takenOver = false;
  try {
    for await (const { event } of tasks.watchTask({ name: submitted.name })) {
      if (event.case === 'workerChanged') takenOver = true;
      if (event.case !== 'stepFinished') continue;
      if (takenOver && standby) return { seconds: (performance.now() - killedAt) / 1_000, standby };
      if (standby) continue;
      standby = await stack.startRolloutWorker();
      killedAt = performance.now();
      await victim.kill();
    }
    throw new Error('the task ended before the standby took it over');
  } finally {
    await tasks.cancelTask({ name: submitted.name });
    tasks.close();
  }
}

/** Kills the running worker n times. Returns each time to the next step, and the worker that is left. */
export async function resumeSeconds(stack: TestStack, worker: TestProcess, n: number): Promise<{ seconds: number[]; worker: TestProcess }> {
  const seconds: number[] = [];
  let current = worker;
  for (let i = 0; i < n; i++) {
    const measured = await resumeOnce(stack, current, i);
    seconds.push(measured.seconds);
    current = measured.standby;
  }
  return { seconds, worker: current };
}
