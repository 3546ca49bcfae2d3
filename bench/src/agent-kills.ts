import type { TestProcess } from '@etude/test-support/processes';
import type { TestStack } from '@etude/test-support/stack';
import { type Action, agentTask, SLOW, SLOW_FIRST_MS, SLOW_MS } from './agent-script.js';
import { percentile, round } from './figures.js';
import type { TasksClient } from './rollout-load.js';

/** Kinds of steps, each with a pattern of the step keys after which the worker is killed. */
const KINDS: Readonly<Record<string, RegExp>> = {
  recall: /recall/,
  'model call': /s1\.act$/,
  'opened sandbox': /\.open$/,
  'call from code': /c1\.t1$/,
  cell: /s1\.c1$/,
  call: /s2\.t1$/,
  'answer as a file': /\.file$/,
  record: /a1\.record$/,
};
const note = (text: string) => `open("log.txt", "a").write("${text}")`;
const PLAN: readonly Action[] = [
  ['code', `${note('a')}; fs_read("notes.txt"); ${note('b')}; fs_search("two"); ${note('c')};`],
  ['read', 'notes.txt'],
  ['code', `${note('d')};`],
  ['write', 'copy.txt', 'one'],
  ['end', 'log.txt'],
];

/** Kills the worker n times after each kind of step, while a second worker is ready to take over. */
export async function killFigures(stack: TestStack, tasks: TasksClient, first: TestProcess, n: number) {
  let worker = first;
  let [models, tools] = [0, 0];
  const resumed: number[] = [];
  for (const [kind, after] of Object.entries(KINDS))
    for (let i = 0; i < n; i++) {
      const { standby, seconds, repeatedModelCalls, repeatedToolCalls } = await killOnce(stack, tasks, worker, [`${kind} ${i}`, after]);
      [worker, models, tools] = [standby, models + repeatedModelCalls, tools + repeatedToolCalls];
      process.stderr.write(`  killed after ${kind}: ${round(seconds)} s\n`);
      if (!Number.isNaN(seconds)) resumed.push(seconds);
    }
  return { resumed: resumed.length, resume_p50_s: percentile(resumed, 50), repeated_model_calls: models, repeated_tool_calls: tools };
}

/** `seconds`: from SIGKILL to the next journaled step, without the scripted model's delay in that step. NaN if no step follows. */
async function killOnce(stack: TestStack, tasks: TasksClient, victim: TestProcess, [about, after]: readonly [string, RegExp]) {
  const before = await answeredCalls(stack);
  const task = agentTask(`${SLOW} ${about}`, PLAN, { 'notes.txt': 'one\ntwo\n' });
  const spec = { ...task, memory: {}, agent: about.replaceAll(' ', '-') };
  const { name } = await tasks.submitTask({ spec });
  let standby: Promise<TestProcess> | undefined;
  let [killedAt, seconds, isTakenOver] = [0, Number.NaN, false];
  const keys: string[] = [];
  for await (const { event } of tasks.watchTask({ name })) {
    // The second worker starts only now, so that the first worker holds the task.
    standby ??= event.case === 'stepFinished' ? stack.startRolloutWorker() : undefined;
    if (event.case === 'finished') {
      const { result, usage } = event.value.task!;
      if (killedAt === 0) throw new Error(`no step of ${name} is a ${about}: ${keys.join(', ')}; ${result?.reason}`);
      const answered = (await answeredCalls(stack)) - before;
      const again = keys.length - new Set(keys).size + Math.abs((result?.output.length ?? 0) - 'abcd'.length);
      return { seconds, repeatedModelCalls: answered - (usage?.modelCalls ?? 0), repeatedToolCalls: again, standby: await standby! };
    }
    if (event.case === 'workerChanged' && killedAt !== 0) isTakenOver = true;
    if (event.case !== 'stepFinished') continue;
    const { step } = event.value;
    keys.push(step);
    if (isTakenOver && Number.isNaN(seconds)) seconds = (performance.now() - killedAt - modelMs(step)) / 1_000;
    if (killedAt !== 0 || !after.test(step)) continue;
    await standby;
    killedAt = performance.now();
    await victim.kill();
  }
  throw new Error(`the watch of ${name} ended early`);
}

const modelMs = (step: string) => (step === 'a1.s1.act' ? SLOW_FIRST_MS : step.endsWith('.act') ? SLOW_MS : 0);

async function answeredCalls({ modelUrl }: TestStack): Promise<number> {
  const { calls } = (await (await fetch(`${modelUrl}/scripted/calls`)).json()) as { calls: ReadonlyArray<{ answered: string }> };
  return calls.filter(({ answered }) => answered === 'fully').length;
}
