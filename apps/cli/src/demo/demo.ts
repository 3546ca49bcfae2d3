import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ConsolidationRunSchema } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { MemoryRecordSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { SkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { StepExplanationSchema, type TaskEvent, TaskEventSchema, TaskSchema, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Command } from 'commander';
import { waitForRun } from '../admin/admin.command.js';
import { callSettings } from '../calls.js';
import { type Cli, createCli, type Gateway, readSettings, type Start, withGateway } from '../cli.js';
import { hand } from '../command.js';
import { embedderSettings } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { type Problem, READERS, readEntries } from '../eval/problems.js';
import { inParallel, sampleOf, type SampleResult, summarize, type Summary, summaryRows } from '../eval/run-sample.js';
import { filesBelow } from '../files.js';
import { ensureLocalKey } from '../home/home.js';
import { findStack, type SandboxDriver } from '../home/stack-state.js';
import { bars, firstLine, table } from '../output.js';
import { details, jsonOf, SCRIPTED, tableOf } from '../show.js';
import { settledSkills, SKILL_COLUMNS } from '../skills/skill-lines.js';
import { signedAddress } from '../stack/down.js';
import { SANDBOX_FLAG } from '../stack/stack.command.js';
import { requireMachine, startStack } from '../stack/up.js';
import { eventLine } from '../tasks/task-lines.js';
import { waitForLearning, waitForTask } from '../tasks/watch-task.js';

const KILLED_AFTER = 'a1.s3.c1';
const SHOWN = ['Working Memory', 'Execution Memory'];

const PROMPT =
  'The tests of this repository fail (python3 -m unittest). Find the mistakes in shop/prices.py and mend them. The tests are right.';

/** @returns whether the agent succeeded although its worker was killed */
async function runAgent(cli: Cli, gateway: Gateway, home: string): Promise<boolean> {
  const spec = {
    agent: 'demo',
    prompt: PROMPT,
    strategy: 'codeact',
    files: repositoryFiles(join(cli.root, 'examples', 'demo', 'repository')),
    evaluator: { kind: { case: 'command' as const, value: { command: 'python3 -m unittest', answerPath: 'shop/prices.py' } } },
  };
  const { name } = await gateway.tasks.submitTask({ spec, requestId: randomUUID() }, callSettings(cli));
  cli.out.data({ kind: 'agent', task: name, prompt: PROMPT }, PROMPT);
  let isKilled = false;
  const onEvent = (event: TaskEvent) => {
    cli.out.data({ kind: 'event', event: jsonOf(TaskEventSchema, event) }, eventLine(event));
    if (isKilled || event.event.case !== 'stepFinished' || event.event.value.step !== KILLED_AFTER) return;
    isKilled = true;
    void killWorker(cli, home);
  };
  const done = await waitForTask(gateway, name, cli.signal, onEvent);
  cli.out.data({ kind: 'task', task: jsonOf(TaskSchema, done) }, '');
  await showMemories(cli, gateway, name);
  return done.state === TaskState.SUCCEEDED && isKilled;
}

function repositoryFiles(folder: string): Array<{ path: string; content: Uint8Array<ArrayBuffer> }> {
  const paths = filesBelow(folder).filter((path) => /\.(?:py|txt)$/.test(path));
  return paths.map((path) => ({ path, content: new Uint8Array(readFileSync(join(folder, path))) }));
}

/** The stack starts another worker, which continues the task. */
async function killWorker(cli: Cli, home: string): Promise<void> {
  const worker = (await findStack(home))?.processes.find(({ name }) => name === 'rollout-worker');
  if (!worker?.pid) return;
  process.kill(worker.pid, 'SIGKILL');
  cli.out.data({ kind: 'killed', pid: worker.pid }, `  SIGKILL to the worker (process ${worker.pid})`);
}

async function showMemories(cli: Cli, gateway: Gateway, name: string): Promise<void> {
  const explained = await gateway.tasks.explainStep({ name }, callSettings(cli));
  const shown = explained.sections.filter(({ title }) => SHOWN.includes(title)).map(({ text }) => withoutTags(text));
  const text = [`What the agent had in mind in step ${explained.step}:`, ...shown].join('\n\n');
  cli.out.data({ kind: 'explanation', explanation: jsonOf(StepExplanationSchema, explained) }, text);
}

const withoutTags = (text: string) => text.replaceAll(/^<\/?\w+-[0-9a-z]+>$\n?/gm, '').trim();

const ID_WIDTH = 18;
/** Number of tasks at once. Their lines mix, so each line begins with its task. */
const CONCURRENCY = 2;

async function runRound(cli: Cli, gateway: Gateway, round: number, problems: readonly Problem[]): Promise<Summary> {
  const started = performance.now();
  const results: SampleResult[] = [];
  const say = (id: string, value: object, text: string) => cli.out.data({ round, id, ...value }, text && `${id.padEnd(ID_WIDTH)} ${text}`);
  await inParallel(problems, CONCURRENCY, cli.signal, async ({ id, spec }) => {
    const { name } = await gateway.tasks.submitTask({ spec, requestId: randomUUID() }, callSettings(cli));
    say(id, { kind: 'submitted', task: name, prompt: spec.prompt }, firstLine(spec.prompt, 96));
    const onEvent = (event: TaskEvent) => say(id, { kind: 'event', event: jsonOf(TaskEventSchema, event) }, eventLine(event));
    const done = await waitForLearning(gateway, await waitForTask(gateway, name, cli.signal, onEvent), cli.signal);
    say(id, { kind: 'task', task: jsonOf(TaskSchema, done) }, '');
    results.push(sampleOf(id, 1, done));
  });
  return summarize(`round ${round}`, results, 1, (performance.now() - started) / 1_000);
}

async function consolidateAndShow(cli: Cli, gateway: Gateway): Promise<void> {
  const started = await gateway.consolidation.runConsolidation({ days: 7, requestId: randomUUID() }, callSettings(cli));
  const run = await waitForRun(cli, gateway, started);
  cli.out.data({ kind: 'consolidation', run: jsonOf(ConsolidationRunSchema, run) }, details(ConsolidationRunSchema, run));
  const { records } = await gateway.memory.listMemory({ kind: 'fact' }, callSettings(cli));
  const facts = records.map((record) => jsonOf(MemoryRecordSchema, record));
  const lines = records.map(({ fields }) => `- ${fields?.['fact'] as string} ${SCRIPTED}`);
  cli.out.data({ kind: 'facts', facts }, ['', 'Facts', ...lines].join('\n'));
  const skills = await settledSkills(cli, async () => (await gateway.skills.listSkills({ pageSize: 200 }, callSettings(cli))).skills);
  const text = `\nSkills from attempts and from consolidation\n${tableOf(SkillSchema, skills, SKILL_COLUMNS)}`;
  cli.out.data({ kind: 'skills', skills: skills.map((skill) => jsonOf(SkillSchema, skill)) }, text);
}

function comparison(first: Summary, second: Summary): string {
  const [left, right] = [first, second].map((round) => summaryRows(round)) as [string[][], string[][]];
  return table(left.map(([name = '', value = ''], index) => [name, value, right[index]?.[1] ?? '']));
}

function curve(rounds: readonly Summary[]): string {
  const plot = (name: 'modelCalls' | 'tokens', title: string) => `${title}\n${bars(rounds.map((round) => [round.run, round[name]]))}`;
  return [
    `Learning curve ${SCRIPTED}`,
    plot('modelCalls', 'Model calls, including those that learn from the tasks'),
    plot('tokens', 'Tokens'),
  ].join('\n');
}

async function tell(cli: Cli, gateway: Gateway, script: string, home: string): Promise<number> {
  const problemsOf = (name: string) => readEntries(READERS.etude, join(cli.root, 'examples', 'demo', `${name}.jsonl`));
  const [firstProblems, secondProblems] = [problemsOf('first-round'), problemsOf('second-round')];
  const heading = (text: string) => cli.out.note(`\n== ${text}`);
  cli.out.note(`All answers come from the script ${script}, not from a model, and are marked ${SCRIPTED}. Everything else is real.`);
  cli.out.note('AC: the evaluator accepts the answer. WA: the answer is wrong. RE: the code failed with an error.');
  heading(`First round: ${firstProblems.length} tasks, in training mode`);
  const firstRound = await runRound(cli, gateway, 1, firstProblems);
  heading('Consolidation: episodes become facts, and skills if the attempts made none');
  await consolidateAndShow(cli, gateway);
  heading(`Second round: ${secondProblems.length} tasks; some are repeated, some are similar`);
  const secondRound = await runRound(cli, gateway, 2, secondProblems);
  heading('An agent that acts in steps: it mends a repository, and its worker is killed on the way');
  const mended = await runAgent(cli, gateway, home);
  heading('Compared');
  const scripted = firstRound.scripted || secondRound.scripted;
  const text = `${comparison(firstRound, secondRound)}\n\n${curve([firstRound, secondRound])}\n\nThe answers came from a script ${SCRIPTED}. With a model of your own: docs/quick-start.md`;
  cli.out.data({ kind: 'summary', firstRound, secondRound, mended, scripted }, text);
  return mended && firstRound.passAt1 === 1 && secondRound.passAt1 === 1 ? EXIT.ok : EXIT.failed;
}

interface DemoOptions {
  readonly sandbox: SandboxDriver;
  readonly keep?: boolean;
}

async function keepOpen({ out, signal }: Cli, home: string, ended: Promise<void>): Promise<void> {
  const state = await findStack(home);
  if (state === null) return;
  const address = signedAddress(state, home);
  out.data(
    { kind: 'console', address },
    `\nConsole: ${address}\nFor commands in another terminal: export ETUDE_HOME=${home}\nCtrl-C stops the demo`,
  );
  await Promise.race([ended, signal.aborted ? undefined : once(signal, 'abort')]);
}

async function demo(cli: Cli, { sandbox, keep = false }: DemoOptions): Promise<number> {
  requireMachine(cli);
  const home = join(cli.home, 'demo');
  if (await findStack(home))
    throw new CliError(EXIT.conflict, `another demo runs in ${home}`, ['wait for its end, or use another folder: --home DIR']);
  // Deletes the state of an earlier demo, so that the demo learns everything again.
  rmSync(home, { recursive: true, force: true });
  const script = join(cli.root, 'examples', 'demo', 'model.yaml');
  ensureLocalKey(home);
  cli.out.note('starting Redis, the scripted model and the four services');
  const stack = await startStack(
    { home, root: cli.root, ports: {}, memory: 'sqlite', scripted: script, sandbox, foreground: true },
    {
      environment: { ...cli.settings.environment, ...embedderSettings({ ...cli, home }) },
      // The first start of a cluster takes minutes, so its notes are printed.
      onNote: (note) => (sandbox === 'kubernetes' ? cli.out.note(note) : cli.out.status(note)),
      signal: cli.signal,
    },
  );
  cli.out.status('');
  // Uses the demo's stack even if the environment names another gateway.
  const own = createCli(readSettings({}), { json: cli.out.json, timeout: cli.globals.timeout, home }, cli.signal, cli.out);
  try {
    const code = await withGateway(own, (gateway) => tell(cli, gateway, script, home));
    if (keep) await keepOpen(cli, home, stack.ended);
    return code;
  } finally {
    await stack.stop();
    cli.out.note(`\nThe demo has stopped. Its memory and logs stay in ${home} until the next demo.`);
  }
}

export function addDemo(program: Command, start: Start): void {
  hand<DemoOptions>({
    command: 'demo',
    help: 'solve sample tasks with a scripted model, then similar ones with the learned skills',
    flags: { '--sandbox <where>': SANDBOX_FLAG, '--keep': 'leave the stack and its console running until Ctrl-C' },
    run: demo,
  })(program, start);
}
