import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type ConsolidationRun, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { type TaskEvent, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { waitForRun } from '../admin/admin.command.js';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, commandLine, type Gateway } from '../cli.js';
import { hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { integer } from '../options.js';
import { plural } from '../output.js';
import { settledSkills } from '../skills/skill-lines.js';
import {
  inParallel,
  newRunId,
  RUN_FLAGS,
  runSample,
  sampleOf,
  type SampleResult,
  sampleText,
  type TaskSettings,
  workOn,
} from './run-sample.js';
import { type Arm, ARMS, figuresOf, figuresText, type Kind, KINDS, type RunLine } from './figures.js';
import { z } from 'zod';
import { type Problem, readEntries, specOf } from './problems.js';

interface FamilyProblem extends Problem {
  readonly family: string;
  readonly familyKind: Kind;
  readonly round: number;
}

const Line = z.looseObject({
  id: z.string().min(1),
  family: z.string().trim().min(1).max(64),
  kind: z.enum(KINDS),
  round: z.int().min(1).max(1_000).optional(),
});

/** Returns a reader for the lines of a file, in order. A line without a round gets its family's next round. */
export function familyReader(): (entry: unknown) => FamilyProblem {
  const known = new Map<string, FamilyProblem>();
  return (entry) => {
    const { id, family, kind: familyKind, round, ...spec } = Line.parse(entry);
    const before = known.get(family);
    if (before && before.familyKind !== familyKind)
      throw new Error(
        `kind: is ${familyKind}, but ${before.id} of the same family ${family} has ${before.familyKind}; give both the same kind`,
      );
    const problem = { id, family, familyKind, round: round ?? (before?.round ?? 0) + 1, spec: specOf(spec) };
    known.set(family, problem);
    return problem;
  };
}

/** The problems of each round, starting with round 1. @throws CliError if a family has no problem for a round */
export function roundsOf(problems: readonly FamilyProblem[], count: number): FamilyProblem[][] {
  const families = new Set(problems.map(({ family }) => family));
  return Array.from({ length: count }, (_, at) => {
    const round = problems.filter((problem) => problem.round === at + 1);
    const missing = [...families].find((family) => !round.some((problem) => problem.family === family));
    if (missing === undefined) return round;
    throw new CliError(EXIT.usage, `the file has no line of the family ${missing} for round ${at + 1}`, [
      'pass fewer --rounds, or add the line',
    ]);
  });
}

interface FamilyOptions extends Omit<TaskSettings, 'memory'> {
  readonly rounds: number;
  readonly concurrency: number;
  readonly resume?: string;
}

/** The file with all lines of a run. A resumed run writes it anew from its tasks. */
export const runFile = ({ home }: Pick<Cli, 'home'>, run: string) => join(home, 'eval', `${run}.jsonl`);

const armSettings = (options: FamilyOptions, arm: Arm): TaskSettings => ({
  ...options,
  agent: `${options.agent}-${arm}`,
  memory: arm === 'with' ? 'learn' : 'off',
});

/** `etude eval families`: returns 0 if every problem got a verdict, else 1. */
async function runFamilies(cli: Cli, options: FamilyOptions, [file = '']: readonly string[]): Promise<number> {
  const rounds = roundsOf(readEntries(familyReader(), file), options.rounds);
  const run = options.resume ?? newRunId(new Date());
  const path = runFile(cli, run);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, '', { mode: 0o600 });
  const lines: RunLine[] = [];
  const say = (line: RunLine, text: string) => {
    lines.push(line);
    appendFileSync(path, `${JSON.stringify(line)}\n`);
    cli.out.data(line, text);
  };
  say({ kind: 'run', run, file: basename(file), rounds: rounds.length, agent: options.agent }, `run ${run}`);
  const resume = await workOn(cli, run, async (gateway) => {
    for (const [at, problems] of rounds.entries()) await runRound(cli, gateway, { run, round: at + 1, problems, options, say });
  });
  const figures = figuresOf(lines);
  cli.out.data({ kind: 'summary', ...figures }, `\n${figuresText(figures)}`);
  cli.out.note(`${commandLine(cli, `eval report ${run} --html FILE`)} draws the curves of ${path}`);
  const errors = lines.filter((line) => line.kind === 'problem' && line.error !== null).length;
  if (errors > 0) cli.out.note(`${plural(errors, 'task')} got no verdict; ${resume} retries them`);
  return errors > 0 ? EXIT.failed : EXIT.ok;
}

interface Round {
  readonly run: string;
  readonly round: number;
  readonly problems: readonly FamilyProblem[];
  readonly options: FamilyOptions;
  readonly say: (line: RunLine, text: string) => void;
}

/** Reads the costs after the consolidation, because learning from a task continues after its answer. */
async function runRound(cli: Cli, gateway: Gateway, { run, round, problems, options, say }: Round): Promise<void> {
  const jobs = problems.flatMap((problem) => ARMS.map((arm) => ({ problem, arm })));
  const results: Array<(typeof jobs)[number] & { readonly result: SampleResult; readonly isMisled: boolean }> = [];
  await inParallel(jobs, options.concurrency, cli.signal, async ({ problem, arm }, signal) => {
    let isMisled = false;
    const onEvent = ({ event }: TaskEvent) => {
      if (event.case === 'attemptFinished') isMisled ||= event.value.skill !== '' && event.value.verdict !== Verdict.AC;
    };
    const settings = armSettings(options, arm);
    const result = await runSample(cli, gateway, `${run}-${arm}`, { problem, sample: 1, onEvent }, settings, signal);
    results.push({ problem, arm, result, isMisled });
    cli.out.status(`round ${round}: ${results.length}/${jobs.length} done`);
  });
  const learned = await consolidated(cli, gateway, `eval-${run}-round-${round}`, armSettings(options, 'with').agent);
  for (const { problem, arm, result, isMisled } of results) {
    const { id, family, familyKind } = problem;
    const now = result.task === null ? result : sampleOf(id, 1, await gateway.tasks.getTask({ name: result.task }, callSettings(cli)));
    say({ ...now, round, arm, family, familyKind, isMisled }, `${round} ${arm.padEnd(8)} ${sampleText(now)}`);
  }
  const { modelCalls, factsAdded, skillsActivated, costUsd, scripted } = learned;
  const [inputTokens, outputTokens] = [Number(learned.inputTokens), Number(learned.outputTokens)];
  const text = `${round} consolidation: ${plural(modelCalls, 'model call')}, ${plural(factsAdded, 'fact')}, ${plural(skillsActivated, 'skill')}`;
  say({ kind: 'consolidation', round, modelCalls, inputTokens, outputTokens, costUsd, factsAdded, skillsActivated, scripted }, text);
}

/** Returns once the skills are verified. A consolidation that failed before is started again. @throws CliError if it fails now */
async function consolidated(cli: Cli, gateway: Gateway, requestId: string, agent: string): Promise<ConsolidationRun> {
  for (let again = 0; ; again++) {
    const request = { agent, days: 7, requestId: again === 0 ? requestId : `${requestId}-again${again}` };
    const started = await ridingOut(cli.signal, () => gateway.consolidation.runConsolidation(request, callSettings(cli)));
    if (started.state === ConsolidationState.FAILED) continue;
    const run = await waitForRun(cli, gateway, started);
    if (run.state === ConsolidationState.FAILED) throw new CliError(EXIT.failed, `${run.name} failed: ${run.error}`);
    await settledSkills(cli, async () => (await gateway.skills.listSkills({ agent, pageSize: 200 }, callSettings(cli))).skills);
    return run;
  }
}

export const FAMILIES = hand<FamilyOptions>({
  command: 'families <file>',
  help: 'solve families of similar problems, round by round, with and without memory',
  flags: {
    '--rounds <n>': { help: 'number of rounds; each takes one problem of every family', usual: 5, parse: integer(1, 1_000) },
    '--agent <name>': { help: 'NAME of the agents NAME-with (memory) and NAME-without', usual: 'families' },
    ...RUN_FLAGS,
  },
  run: runFamilies,
});
