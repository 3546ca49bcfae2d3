import { EMPTY_SCRATCHPAD } from '@etude/contracts/scratchpad';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WorkSandbox } from '@etude/domain/ports/sandboxes';
import { chatModelFrom, modelConfig } from '@etude/model/model-config';
import type { TestStack } from '@etude/test-support/stack';
import { type Action, agentTask, followSteps, promptOf, type Step } from './agent-script.js';
import { percentile, repeat } from './figures.js';
import type { TasksClient } from './rollout-load.js';

const never = new AbortController().signal;
const median = (values: readonly number[]) => percentile(values, 50);
const PASSES: readonly Action[] = [...Array.from({ length: 19 }, (_, i) => ['code', `pass  # ${i}`] as const), ['end', 'a.txt']];

/** Times tasks of 20 steps whose cells do nothing. Baselines: bare calls of the same model, and cells of a sandbox without a journal. */
export async function stepFigures(stack: TestStack, tasks: TasksClient, sandbox: WorkSandbox, n: number) {
  const runs: Array<readonly Step[]> = [];
  for (let i = 0; i <= n; i++) runs.push((await followSteps(tasks, agentTask(`steps ${i}`, PASSES, { 'a.txt': 'done\n' }))).steps);
  const model = chatModelFrom(modelConfig.parse({ OPENAI_BASE_URL: `${stack.modelUrl}/v1`, OPENAI_MODEL: 'scripted' }));
  const messages = [
    { role: 'system', content: 'You act in steps. '.repeat(60) },
    { role: 'user', content: `${promptOf('bare', PASSES)}\n\n# Now\n\nStep 10 of 20.` },
  ] as const;
  const bareModel = await repeat(20 * n, () => model.chat({ messages }, never));
  const cell = { code: 'pass', tools: [], scratchpad: EMPTY_SCRATCHPAD };
  const bareCell = await repeat(20 * n, (i) => sandbox.run({ ...cell, executionId: `bare-${i}` }, notAsked, never));
  const between = (from: number, to: number) => median(runs.slice(1).flatMap((steps) => durations(steps).slice(from - 2, to - 1)));
  const [step, call, ran] = [between(3, 19), median(bareModel), median(bareCell)];
  const bare = { bare_model_p50_ms: call, bare_cell_p50_ms: ran };
  return { step_p50_ms: step, ...bare, step_overhead_p50_ms: step - call - ran, step_late_over_early: between(16, 19) / between(3, 6) };
}

const notAsked = () => Promise.resolve({ success: false as const, error: 'not asked' });

/** Time between the events of consecutive cells, from step 2 on. */
const durations = (steps: readonly Step[]): readonly number[] =>
  steps.flatMap(({ step, at }, i) => (step.endsWith('.c1') && !step.startsWith('a1.s1.') ? [at - steps[i - 2]!.at] : []));

const PROBE = `import json, time

def probe(name, call):
    times = []
    for i in range(60):
        start = time.perf_counter()
        call(i)
        times.append((time.perf_counter() - start) * 1000)
    json.dump(sorted(times)[30], open(name, "w"))
`;
const TODOS = `from probe import probe; probe("todos.json", lambda i: write_todos([{"content": "part %d" % i, "status": "pending"}]))`;
const READS = `from probe import probe; probe("reads.json", lambda i: fs_read("f%d.txt" % (i % 30)))`;
const WRITES = `from probe import probe; probe("writes.json", lambda i: fs_write("w%d.txt" % i, "text"))`;

/** Median in ms of a tool call from code: in a rollout, and in a sandbox whose calls are answered at once. */
export async function callFigures(tasks: TasksClient, sandbox: WorkSandbox, n: number) {
  const files = { 'probe.py': PROBE, ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}.txt`, `text ${i}\n`])) };
  const measured = async (code: string, file: string) => {
    const plan: readonly Action[] = [['code', code] as const, ['end', file] as const];
    const values: number[] = [];
    for (let i = 0; i < n; i++) values.push(Number((await followSteps(tasks, agentTask(`calls ${i}`, plan, files))).task.result?.output));
    return median(values);
  };
  await sandbox.write('probe.py', new TextEncoder().encode(PROBE), never);
  const tools = [{ name: 'write_todos', parameters: ['todos'], description: '' }];
  const cell = { executionId: 'bare-calls', code: TODOS, tools, scratchpad: EMPTY_SCRATCHPAD };
  await sandbox.run(cell, () => Promise.resolve({ success: true, result: {} }), never);
  const bare = Number(new TextDecoder().decode((await sandbox.read('todos.json', 1_000, never)) ?? undefined));
  const [todos, reads] = [await measured(TODOS, 'todos.json'), await measured(READS, 'reads.json')];
  const writes = await measured(WRITES, 'writes.json');
  return { call_write_todos_p50_ms: todos, call_fs_read_p50_ms: reads, call_fs_write_p50_ms: writes, call_bare_p50_ms: bare };
}

/** Prompt tokens of steps 5 and 20 of a task that reads 1,000 characters of Python in each step. */
export async function promptFigures(tasks: TasksClient) {
  const folder = fileURLToPath(new URL('../../libs/sandbox/runner/', import.meta.url));
  const texts = globSync('*.py', { cwd: folder }).map((path) => [path, readFileSync(folder + path, 'utf8').slice(0, 1_000)] as const);
  const chosen = texts.filter(([, { length }]) => length > 990).slice(0, 19);
  const plan: readonly Action[] = [...chosen.map(([path]) => ['read', path] as const), ['end', chosen[0]![0]]];
  const { steps } = await followSteps(tasks, agentTask('prompts', plan, Object.fromEntries(chosen)));
  const tokens = (step: number) => steps.find((one) => one.step === `a1.s${step}.act`)?.inputTokens ?? Number.NaN;
  return { prompt_tokens_step_5: tokens(5), prompt_tokens_step_20: tokens(20), prompt_20_over_5: tokens(20) / tokens(5) };
}
