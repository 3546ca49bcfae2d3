import { parseArgs } from 'node:util';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { RedisKeys } from '@etude/queue/redis/keys';
import { connectRedis } from '@etude/queue/redis/redis';
import { ControllerChannels, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { RouterWorkSandboxes } from '@etude/queue/sandboxes/router-work-sandboxes';
import { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { startStack } from '@etude/test-support/stack';
import { findingFigures } from './agent-findings.js';
import { killFigures } from './agent-kills.js';
import { repeatFigures } from './agent-repeats.js';
import { agentScript } from './agent-script.js';
import { callFigures, promptFigures, stepFigures } from './agent-steps.js';
import { round, summaryLine } from './figures.js';
import { tasksClient } from './rollout-load.js';

const TOKEN = 'a-token-of-the-bench';
const say = (text: string) => process.stderr.write(`${text}\n`);

/**
 * `etude bench agent [--json] [--quick] [--only steps|calls|prompts|repeats|kills|findings]`: what an agent in steps costs in addition to its
 * model. The baselines reach their sandbox in the same way as a rollout.
 */
export async function run(args: readonly string[]): Promise<number> {
  const options = { json: { type: 'boolean' }, quick: { type: 'boolean' }, only: { type: 'string' } } as const;
  const { quick, json, only } = parseArgs({ args: [...args], options }).values;
  const stack = await startStack({ script: agentScript(), env: { ETUDE_SANDBOX_INTERNAL_TOKEN: TOKEN } });
  const [redis, keys, tasks] = [connectRedis(stack.redis.url, 'producer'), new RedisKeys('etude'), tasksClient(stack)];
  const reached = { sessions: new SandboxSessionStore(redis, keys), directory: new ControllerDirectory(redis, keys) };
  const router = new SandboxRouter({ ...reached, channels: new ControllerChannels(TOKEN) });
  try {
    const worker = await stack.startRolloutWorker();
    const request = { tenant: 'test', requestId: 'bare', template: undefined, limits: SandboxLimits.parse({}) };
    const sandbox = await new RouterWorkSandboxes(router).open(request, new AbortController().signal);
    const parts: Readonly<Record<string, () => Promise<Record<string, number>>>> = {
      steps: () => stepFigures(stack, tasks, sandbox, quick ? 3 : 20),
      calls: () => callFigures(tasks, sandbox, quick ? 1 : 5),
      prompts: () => promptFigures(tasks),
      repeats: () => repeatFigures(redis, tasks, quick ? 20 : 200),
      kills: () => killFigures(stack, tasks, worker, quick ? 1 : 3),
      findings: () => findingFigures(say),
    };
    const figures: Record<string, number> = {};
    for (const [part, measure] of Object.entries(parts).filter(([name]) => only === undefined || name === only)) {
      say(`${part} ...`);
      for (const [name, value] of Object.entries(await measure())) figures[name] = round(value, 3);
    }
    if (!json) for (const [name, value] of Object.entries(figures)) process.stdout.write(`${name.padEnd(28)} ${value}\n`);
    process.stdout.write(`${summaryLine('agent', figures)}\n`);
    return 0;
  } finally {
    tasks.close();
    router.close();
    redis.disconnect();
    await stack.stop();
  }
}
