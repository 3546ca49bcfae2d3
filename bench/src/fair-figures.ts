import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { startStack } from '@etude/test-support/stack';
import { percentile, round, spread } from './figures.js';
import { onlySteps, type TasksClient } from './rollout-load.js';

const TENANTS = ['quiet', 'loud'] as const;
const SUBMITS_AT_ONCE = 16;
const WARM_UP = 3;

/** ms from the submit of each of n tasks to the end of its first step. Then the task is cancelled. */
async function waitsOf(tasks: TasksClient, n: number): Promise<number[]> {
  const waits: number[] = [];
  for (let i = 0; i < WARM_UP + n; i++) {
    const start = performance.now();
    const { name } = await tasks.submitTask({ spec: onlySteps(i, 2) });
    for await (const { event } of tasks.watchTask({ name })) if (event.case === 'stepFinished') break;
    waits.push(performance.now() - start);
    await tasks.cancelTask({ name });
  }
  return waits.slice(WARM_UP);
}

/**
 * One rollout worker with eight places, and a model that takes 500 ms per call. A quiet tenant submits one task after the other: alone,
 * then beside a tenant with `waiting` tasks in the queue.
 */
export async function fairFigures(n: number, waiting: number): Promise<Record<string, number>> {
  const dir = mkdtempSync(join(tmpdir(), 'etude-fair-'));
  const keysPath = join(dir, 'keys.json');
  const keys = TENANTS.map((tenant) => ({ sha256: createHash('sha256').update(tenant).digest('hex'), tenant }));
  writeFileSync(keysPath, JSON.stringify({ keys }));
  const env = { ETUDE_AUTH_KEYS_PATH: keysPath, ETUDE_AUTH_ANONYMOUS_TENANT: '' };
  const stack = await startStack({ script: fileURLToPath(new URL('../src/fair.yaml', import.meta.url)), env });
  const [quiet, loud] = TENANTS.map((apiKey) => createServiceClient(Tasks, stack.address, { apiKey })) as [TasksClient, TasksClient];
  try {
    await stack.startRolloutWorker();
    const alone = await waitsOf(quiet, n);
    await spread(waiting, SUBMITS_AT_ONCE, (i) => loud.submitTask({ spec: onlySteps(i, 2) }));
    const beside = await waitsOf(quiet, n);
    return {
      alone_first_step_p50_ms: round(percentile(alone, 50), 1),
      alone_first_step_p95_ms: round(percentile(alone, 95), 1),
      beside_first_step_p50_ms: round(percentile(beside, 50), 1),
      beside_first_step_p95_ms: round(percentile(beside, 95), 1),
      beside_over_alone_p95: round(percentile(beside, 95) / percentile(alone, 95)),
    };
  } finally {
    for (const client of [quiet, loud]) client.close();
    await stack.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}
