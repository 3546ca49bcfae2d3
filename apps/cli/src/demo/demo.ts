import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { toJson } from '@bufbuild/protobuf';
import { ConsolidationRunSchema } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { type MemoryHit, MemoryHitSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { type Skill, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Command } from 'commander';
import { waitForRun } from '../admin/admin.command.js';
import { callSettings, inPages } from '../calls.js';
import { hand } from '../command.js';
import { SANDBOX_FLAG } from '../stack/stack.command.js';
import { type Cli, type Gateway, openGateway, type Start } from '../cli.js';
import { settleEmbedder } from '../embedder/embedder.js';
import { CliError, EXIT, explain } from '../errors.js';
import { type Problem, readProblems } from '../eval/problems.js';
import { table } from '../output.js';
import { details, SCRIPTED, tableOf } from '../show.js';
import { SKILL_COLUMNS } from '../skills/skill-lines.js';
import { ensureLocalKey, keyPath } from '../home/home.js';
import { findStack, type SandboxDriver, type StackOptions } from '../home/stack-state.js';
import { startStack } from '../stack/start-stack.js';
import { requireMachine } from '../stack/up.js';
import { type Round, runRound } from './demo-round.js';

const SKILLS_TIMEOUT_MS = 30_000;
const SKILLS_MAX = 1_000;

/** Nothing of an earlier demo is used: what is learned is learned before the reader's eyes. */
async function freshHome(cli: Cli): Promise<string> {
  const home = join(cli.home, 'demo');
  if (await findStack(home))
    throw new CliError(EXIT.conflict, `another demo runs in ${home}`, ['wait for its end, or use another folder: --home DIR']);
  rmSync(home, { recursive: true, force: true });
  return home;
}

/** Consolidation has stored every candidate; they are verified one after the other. Answers them once none is left to verify. */
async function settledSkills(cli: Cli, gateway: Gateway): Promise<Skill[]> {
  const deadline = performance.now() + SKILLS_TIMEOUT_MS;
  for (;;) {
    const { items } = await inPages(SKILLS_MAX, async (page) => {
      const { skills, nextPageToken } = await gateway.skills.listSkills(page, callSettings(cli));
      return { items: skills, nextPageToken };
    });
    const skills = [...items];
    const waiting = skills.some(({ status }) => status === SkillStatus.CANDIDATE || status === SkillStatus.VERIFIED);
    if (!waiting || performance.now() > deadline) return skills;
    await sleep(100, undefined, { signal: cli.signal });
  }
}

async function factsAbout(cli: Cli, gateway: Gateway, problems: readonly Problem[]): Promise<MemoryHit[]> {
  const facts = new Map<string, MemoryHit>();
  for (const { spec } of problems) {
    const found = await gateway.memory.searchMemory(
      { query: spec.prompt, layers: ['semantic'], limit: 5 },
      { timeoutMs: cli.callTimeoutMs, signal: cli.signal },
    );
    for (const hit of found.hits) if (hit.kind === 'fact') facts.set(hit.id, hit);
  }
  return [...facts.values()];
}

async function consolidateAndShow(cli: Cli, gateway: Gateway, problems: readonly Problem[]): Promise<void> {
  const started = await gateway.consolidation.runConsolidation({ days: 7, requestId: randomUUID() }, callSettings(cli));
  const run = await waitForRun(cli, gateway, started);
  cli.out.data({ kind: 'consolidation', run: toJson(ConsolidationRunSchema, run) }, details(ConsolidationRunSchema, run));
  const facts = await factsAbout(cli, gateway, problems);
  const lines = facts.map(({ text }) => `- ${text} ${SCRIPTED}`);
  cli.out.data({ kind: 'facts', facts: facts.map((fact) => toJson(MemoryHitSchema, fact)) }, ['', 'Facts', ...lines].join('\n'));
  const skills = await settledSkills(cli, gateway);
  cli.out.data(
    { kind: 'skills', skills: skills.map((skill) => toJson(SkillSchema, skill)) },
    `\nSkills, of the attempts and of consolidation\n${tableOf(SkillSchema, skills, SKILL_COLUMNS)}`,
  );
}

function comparison(first: Round, second: Round): string {
  const row = (name: string, pick: (round: Round) => number | string) => [name, String(pick(first)), String(pick(second))];
  return table([
    ['', 'FIRST ROUND', 'SECOND ROUND'],
    row('tasks solved', ({ solved, tasks }) => `${solved} of ${tasks}`),
    row('attempts', ({ attempts }) => attempts),
    row('model calls', ({ modelCalls, learningCalls }) => `${modelCalls} (${learningCalls} of them to learn)`),
    row('tokens', ({ tokens }) => tokens),
    row('solved by a skill', ({ skillsUsed }) => skillsUsed),
    row('seconds', ({ seconds }) => seconds.toFixed(1)),
  ]);
}

async function tell(cli: Cli, gateway: Gateway, script: string): Promise<number> {
  const problemsOf = (name: string) => readProblems('etude', join(cli.root, 'examples', 'demo', `${name}.jsonl`)).problems;
  const [firstProblems, secondProblems] = [problemsOf('first-round'), problemsOf('second-round')];
  const heading = (text: string) => cli.out.note(`\n== ${text}`);
  cli.out.note(
    `All answers come from the script ${relative(cli.root, script)}, not from a model; they are marked ${SCRIPTED}. Everything else is real.`,
  );
  cli.out.note('AC is an answer that its evaluator accepts, WA a wrong one, RE an error while it ran.');
  heading(`First round: ${firstProblems.length} tasks, in training mode`);
  const first = await runRound(cli, gateway, 1, firstProblems);
  heading('Consolidation: what happened becomes facts, and skills where the attempts left none');
  await consolidateAndShow(cli, gateway, firstProblems);
  heading(`Second round: ${secondProblems.length} tasks, some the same, some alike in other words`);
  const second = await runRound(cli, gateway, 2, secondProblems);
  heading('Compared');
  const summary = {
    kind: 'summary',
    tasks: first.tasks + second.tasks,
    solved: first.solved + second.solved,
    firstRound: { modelCalls: first.modelCalls, tokens: first.tokens },
    secondRound: { modelCalls: second.modelCalls, tokens: second.tokens, skillsUsed: second.skillsUsed },
    scripted: [...first.finished, ...second.finished].some(({ result }) => result?.scripted === true),
  };
  cli.out.data(
    summary,
    `${comparison(first, second)}\n\nThe answers came from a script ${SCRIPTED}. With a model of your own: docs/quick-start.md`,
  );
  return summary.solved === summary.tasks ? EXIT.ok : EXIT.failed;
}

interface DemoOptions {
  readonly sandbox: SandboxDriver;
}

/** `etude demo`: a stack of its own with a scripted model, from nothing, and gone when it ends. */
async function demo(cli: Cli, { sandbox }: DemoOptions): Promise<number> {
  requireMachine(cli);
  const home = await freshHome(cli);
  const script = join(cli.root, 'examples', 'demo', 'model.yaml');
  ensureLocalKey(home);
  const options: StackOptions = {
    home,
    root: cli.root,
    grpcPort: 0,
    restPort: 0,
    mcpPort: 0,
    redisPort: 0,
    rolloutWorkers: 1,
    concurrency: 4,
    scripted: script,
    sandbox,
    memory: 'sqlite',
    foreground: true,
  };
  cli.out.note('starting Redis, the scripted model and the four services');
  const stack = await startStack(options, {
    environment: settleEmbedder({ ...cli, home }).environment,
    // A cluster takes minutes the first time: that is worth lines that stay.
    onNote: (note) => (sandbox === 'kubernetes' ? cli.out.note(note) : cli.out.status(note)),
    signal: cli.signal,
  });
  cli.out.status('');
  const address = (await findStack(home))?.address ?? '';
  const gateway = openGateway(address, readFileSync(keyPath(home), 'utf8').trim());
  try {
    return await tell(cli, gateway, script);
  } catch (error) {
    throw explain(error, address);
  } finally {
    gateway.close();
    await stack.stop();
    cli.out.note(`\nIts memory and logs stay in ${home} until the next demo; nothing needs them, and nothing runs any more.`);
  }
}

/** `demo`. */
export function addDemo(program: Command, start: Start): void {
  hand<DemoOptions>({
    command: 'demo',
    help: 'sample tasks, solved by a script in place of a model; then learned from, then solved by skills',
    flags: { '--sandbox <where>': SANDBOX_FLAG },
    run: demo,
  })(program, start);
}
