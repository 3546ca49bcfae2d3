import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { TestProcess } from '@etude/test-support/processes';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { percentile, round, spread } from './figures.js';
import { readProcesses } from './proc.js';
import { follow, oneAttempt, tasksClient } from './rollout-load.js';

const ROLLOUTS = 60;
/** Rollouts until V8 has compiled the code that is used much. */
const WARM_UP = 400;
const AT_ONCE = 16;

/** A collector that discards its input and so takes little time. A real collector works on another machine. */
async function startSink() {
  let bytes = 0;
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => (bytes += chunk.byteLength));
    request.on('end', () => response.writeHead(200).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const env = { ETUDE_TRACES: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
  return { env, bytes: () => bytes, close: () => server.close() };
}

interface Side {
  readonly stack: TestStack;
  readonly worker: TestProcess;
}

interface Round {
  readonly perSecond: number;
  /** Processor time of the services and Redis for one rollout. */
  readonly cpuMs: number;
}

async function roundOf({ stack, worker }: Side, first: number, rollouts: number): Promise<Round> {
  const pids = [stack.redis.pid, stack.gateway.pid, stack.controller.pid, stack.consolidator.pid, worker.pid];
  const tasks = tasksClient(stack);
  const before = readProcesses(pids).cpuSeconds;
  const ms = await spread(rollouts, AT_ONCE, async (i) => {
    const { task } = await follow(tasks, oneAttempt(first + i));
    if (task.state !== TaskState.SUCCEEDED) throw new Error(`${task.name} was not solved`);
  });
  tasks.close();
  return { perSecond: rollouts / (ms / 1_000), cpuMs: ((readProcesses(pids).cpuSeconds - before) * 1_000) / rollouts };
}

async function startSide(env: Readonly<Record<string, string>>): Promise<Side> {
  const stack = await startStack({ script: fileURLToPath(new URL('../src/instant.yaml', import.meta.url)), env });
  return { stack, worker: await stack.startRolloutWorker() };
}

/**
 * The cost of traces: runs two stacks in turns, one with traces. Each figure is the value with traces divided by the value without:
 * `traced_rollouts_ratio` of rollouts per second, `traced_cpu_ratio` of processor time per rollout. Medians over pairs of rounds.
 */
export async function traceFigures(rounds: number) {
  const sink = await startSink();
  const off = await startSide({});
  const on = await startSide(sink.env);
  try {
    for (const side of [off, on]) await roundOf(side, 0, WARM_UP);
    const pairs: Array<Record<'off' | 'on', Round>> = [];
    for (let n = 1; n <= rounds; n += 1) {
      // The order alternates between pairs, because the machine may get slower or faster.
      const inOrder = n % 2 === 0 ? (['off', 'on'] as const) : (['on', 'off'] as const);
      const pair: Partial<Record<'off' | 'on', Round>> = {};
      for (const name of inOrder) pair[name] = await roundOf({ off, on }[name], n * 10_000, ROLLOUTS);
      pairs.push(pair as Record<'off' | 'on', Round>);
    }
    const share = (of: keyof Round, p = 50) =>
      round(
        percentile(
          pairs.map((pair) => pair.on[of] / pair.off[of]),
          p,
        ),
        3,
      );
    return {
      traced_rollouts_ratio: share('perSecond'),
      traced_rollouts_ratio_p25: share('perSecond', 25),
      traced_rollouts_ratio_p75: share('perSecond', 75),
      traced_cpu_ratio: share('cpuMs'),
      untraced_rollouts_per_s: round(
        percentile(
          pairs.map((pair) => pair.off.perSecond),
          50,
        ),
        1,
      ),
      untraced_cpu_ms_per_rollout: round(
        percentile(
          pairs.map((pair) => pair.off.cpuMs),
          50,
        ),
        1,
      ),
      trace_kib_per_rollout: round(sink.bytes() / 1_024 / (rounds * ROLLOUTS + WARM_UP), 2),
    };
  } finally {
    await Promise.all([off, on].map(({ stack }) => stack.stop()));
    sink.close();
  }
}
