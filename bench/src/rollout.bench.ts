import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { TestProcess } from '@etude/test-support/processes';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { startBareFork } from './bare-fork.js';
import { bareJobsPerSecond } from './bare-redis.js';
import { percentile, repeat, round, spread, summaryLine } from './figures.js';
import { journalFigures } from './journal-figures.js';
import { processTree, readProcesses } from './proc.js';
import { resumeSeconds } from './resume-figures.js';
import { BARE_SOLUTION, follow, type Followed, oneAttempt, onlySteps, tasksClient, type TasksClient } from './rollout-load.js';

const WARM_UP = 20;
const IDLE_SECONDS = 20;
const PAYLOAD = { v: 1, tenant: 'test', taskId: 't0123456789abcdefghijklmno', rolloutId: 't0123456789abcdefghijklmno-r1' };
const MODEL_PHASES = new Set(['draft', 'generate', 'critique']);

const say = (text: string) => process.stderr.write(`${text}\n`);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function modelMs({ phases }: Followed): number {
  return [...phases].filter(([kind]) => MODEL_PHASES.has(kind)).reduce((sum, [, ms]) => sum + ms, 0);
}

function assertSolved({ task }: Followed): void {
  if (task.state !== TaskState.SUCCEEDED) throw new Error(`${task.name} was not solved: ${task.result?.reason ?? task.error?.message}`);
}

/** Runs tasks one after the other. Measures what one attempt costs in addition to its model calls. */
async function latency(tasks: TasksClient, n: number) {
  const runs: Followed[] = [];
  for (let i = 0; i < WARM_UP + n; i++) {
    const followed = await follow(tasks, oneAttempt(i));
    assertSolved(followed);
    if (i >= WARM_UP) runs.push(followed);
  }
  const bare = startBareFork();
  await repeat(WARM_UP, () => bare.run(BARE_SOLUTION));
  const bareMs = await repeat(n, () => bare.run(BARE_SOLUTION));
  await bare.close();
  const overhead = runs.map((one) => one.totalMs - modelMs(one));
  return {
    overheadMs: percentile(overhead, 50),
    bareMs: percentile(bareMs, 50),
    firstEventMs: percentile(
      runs.map((one) => one.firstEventMs),
      50,
    ),
    runs,
  };
}

/** Median time of each kind of step, and the rest of the whole time: accepting, queueing, watching. */
function phaseTable(runs: readonly Followed[]): string[] {
  const kinds = [...new Set(runs.flatMap(({ phases }) => [...phases.keys()]))];
  const rows = kinds.map(
    (kind) =>
      [
        kind,
        percentile(
          runs.map(({ phases }) => phases.get(kind) ?? 0),
          50,
        ),
      ] as const,
  );
  const rest = percentile(
    runs.map((one) => one.totalMs - [...one.phases.values()].reduce((a, b) => a + b, 0)),
    50,
  );
  return [...rows, ['accept, queue, watch', rest] as const].map(([kind, ms]) => `  ${kind.padEnd(22)} ${ms.toFixed(1).padStart(7)} ms`);
}

async function throughput(tasks: TasksClient, stack: TestStack, n: number) {
  const elapsedMs = await spread(n, 16, async (i) => assertSolved(await follow(tasks, oneAttempt(10_000 + i))));
  const jobs = await bareJobsPerSecond(stack.redis.url, n * 4, 16, PAYLOAD);
  return { rollouts: n / (elapsedMs / 1_000), jobs };
}

async function stepsPerSecond(tasks: TasksClient, n: number): Promise<number> {
  let steps = 0;
  const elapsedMs = await spread(n, 16, async (i) => {
    const { task } = await follow(tasks, onlySteps(i, 25));
    steps += task.usage?.steps ?? 0;
  });
  return steps / (elapsedMs / 1_000);
}

async function idle(stack: TestStack, worker: TestProcess) {
  await sleep(5_000); // for background work to end
  const roots = [stack.redis.pid, stack.gateway.pid, stack.controller.pid, stack.consolidator.pid, worker.pid];
  const before = readProcesses(roots.flatMap(processTree));
  await sleep(IDLE_SECONDS * 1_000);
  const after = readProcesses(roots.flatMap(processTree));
  return { rssMiB: after.rssMiB, cpuPercent: ((after.cpuSeconds - before.cpuSeconds) / IDLE_SECONDS) * 100 };
}

/** `etude bench rollout [--json] [--quick]`: compares everything around the model with baselines of the same run. */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { json: { type: 'boolean' }, quick: { type: 'boolean' } } });
  const scale = values.quick ? 0.1 : 1;
  const script = fileURLToPath(new URL('../src/instant.yaml', import.meta.url));
  const stack = await startStack({ script });
  try {
    const worker = await stack.startRolloutWorker();
    const tasks = tasksClient(stack);
    say('idle stack ...');
    const resting = await idle(stack, worker);
    say('one attempt after the other ...');
    const one = await latency(tasks, 200 * scale);
    say('many at once ...');
    const many = await throughput(tasks, stack, 400 * scale);
    say('steps without code to run ...');
    const steps = await stepsPerSecond(tasks, 100 * scale);
    say('a journaled step ...');
    const journal = await journalFigures(stack.redis.url);
    say('killing workers ...');
    const resumed = await resumeSeconds(stack, worker, values.quick ? 1 : 7);
    tasks.close();
    const figures = {
      overhead_p50_ms: round(one.overheadMs),
      overhead_vs_bare_ratio: round(one.overheadMs / one.bareMs),
      first_event_p50_ms: round(one.firstEventMs),
      rollouts_vs_bullmq_ratio: round(many.rollouts / many.jobs, 4),
      idle_rss_mib: round(resting.rssMiB),
      idle_cpu_percent: round(resting.cpuPercent),
      journal_step_over_bare_ms: round(journal.step - journal.bare, 3),
      steps_per_s: round(steps, 1),
      resume_p50_s: round(percentile(resumed.seconds, 50)),
    };
    if (!values.json) {
      const lines = ['Where one attempt goes (medians; draft and generate are the model):', ...phaseTable(one.runs)];
      lines.push(
        `Bare fork and run: ${round(one.bareMs)} ms. Rollouts: ${round(many.rollouts, 1)}/s beside ${round(many.jobs, 1)} bare jobs/s.`,
      );
      lines.push(`Journaled step p95 ${round(journal.step, 3)} ms, bare write p95 ${round(journal.bare, 3)} ms.`);
      process.stdout.write(`${lines.join('\n')}\n`);
    }
    process.stdout.write(`${summaryLine('rollout', figures)}\n`);
    return 0;
  } finally {
    await stack.stop();
  }
}
