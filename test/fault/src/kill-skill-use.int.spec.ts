import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { TestProcess } from '@etude/test-support/processes';
import { until } from '@etude/test-support/until';
import { beforeAll, describe, expect, it } from 'vitest';
import { KEYS, startSkillStack, TENANT } from './observed.js';

/** Ends a case that hangs. */
const TIMEOUT_MS = 300_000;
const AGENT = 'user-of-skills';
const NAME = 'slow_double';
/** Slow enough to be killed while it runs. */
const CODE = `import time\n\ndef ${NAME}(number: int) -> int:\n    """Doubles a number."""\n    time.sleep(0.2)\n    return number * 2\n`;
const number = (value: number) => ({ kind: { case: 'numberValue' as const, value } });

type Victim = 'gateway' | 'sandbox-controller' | 'consolidation-worker';
const { stack, redis, skills } = await startSkillStack();
const victims: Record<Victim, TestProcess> = {
  gateway: stack.gateway,
  'sandbox-controller': stack.controller,
  'consolidation-worker': stack.consolidator,
};

beforeAll(async () => {
  const tests = [3, -7, 11].map((given) => ({
    test: { case: 'call' as const, value: { args: { values: [number(given)] }, expected: number(given * 2) } },
  }));
  const skill = { name: NAME, agent: AGENT, code: CODE, description: 'Doubles a number, slowly.', tests };
  const { status } = await skills.registerSkill({ skill, wait: true }, { timeoutMs: 60_000 });
  if (status !== SkillStatus.ACTIVE) throw new Error(`${NAME} is ${SkillStatus[status]}`);
});

/** Retries under the same request id until it gets an answer. */
async function useUntilAnswered(requestId: string): Promise<number> {
  const used = await until(
    () => skills.useSkill({ name: `skills/${NAME}`, agent: AGENT, parameters: { number: 21 }, requestId }).catch(() => null),
    { what: `an answer to ${requestId}`, everyMs: 100 },
  );
  expect(used.error).toBe('');
  return used.result?.kind.case === 'numberValue' ? used.result.kind.value : Number.NaN;
}

/** The key of the execution that isn't in `before`. Uses run one after another, so there is only one such execution. */
async function newExecution(before: ReadonlySet<string>): Promise<string> {
  return until(async () => (await executions()).find((key) => !before.has(key)), { what: 'the execution of the use', everyMs: 2 });
}
/** The counted uses and executions of the skill. */
async function counted(): Promise<readonly [number, number]> {
  const { usedCount, executionCount } = await skills.getSkill({ name: `skills/${NAME}`, agent: AGENT });
  return [Number(usedCount), Number(executionCount)];
}
const executions = () => redis.keys(KEYS.execution(TENANT, 'use-*'));

const MOMENTS = {
  'the use is requested': async () => true,
  'its result is saved': async (execution: string) => (await redis.hget(execution, 'result')) !== null,
  'its count is pending': async () => (await redis.hlen(KEYS.memoryOutbox(TENANT))) > 0,
} satisfies Record<string, (execution: string) => Promise<boolean>>;

/** For each moment, the processes that take part in the use. */
const CASES = [
  { moment: 'the use is requested', victim: 'gateway' },
  { moment: 'the use is requested', victim: 'sandbox-controller' },
  { moment: 'its result is saved', victim: 'gateway' },
  { moment: 'its count is pending', victim: 'gateway' },
  { moment: 'its count is pending', victim: 'consolidation-worker' },
] as const;

describe('a use of a skill', () => {
  it.each(CASES)(
    'is answered and counted once when the $victim is killed while $moment',
    async ({ moment, victim }) => {
      const requestId = `${victim} ${moment}`.replaceAll(/\W+/g, '-');
      const before = new Set(await executions());
      const [used, executed] = await counted();
      let isAnswered = false;
      const answered = useUntilAnswered(requestId).finally(() => (isAnswered = true));
      const execution = await newExecution(before);
      await until(async () => isAnswered || (await MOMENTS[moment](execution)), { what: moment, everyMs: 1 });
      await victims[victim].kill();
      victims[victim] = await stack.start(victim);
      expect(await answered).toBe(42);
      expect(await useUntilAnswered(requestId)).toBe(42);
      await until(async () => (await redis.hlen(KEYS.memoryOutbox(TENANT))) === 0, { what: 'that all is counted' });
      expect(await counted()).toEqual([used + 1, executed + 1]);
    },
    TIMEOUT_MS,
  );
});
