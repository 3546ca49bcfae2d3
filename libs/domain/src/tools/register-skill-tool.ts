import { SkillName } from '@etude/contracts/ids';
import { Json } from '@etude/contracts/json';
import type { SkillTest } from '@etude/contracts/memory';
import type { RunResult } from '@etude/contracts/sandbox';
import { SkillCategory } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { sameValue } from '../evaluation/compare.js';
import { refuseUnfinished } from '../evaluation/judge.js';
import type { Sandboxes } from '../ports/sandboxes.js';
import { contentDigest } from '../skills/content-digest.js';
import { CODE_MAX_CHARS, LIMITS } from './execute-code.js';
import type { SkillReader } from '../skills/life/find-skill.js';
import type { BundledCode, ToolContext, ToolDefinition } from './tool-definition.js';
import { defineTool } from './tool-definition.js';

const TESTS_MAX = 100;

const Args = z.array(Json).default([]);
const Kwargs = z.record(z.string(), Json).default({});
const Test = z.strictObject({
  args: Args.describe('Positional arguments.'),
  kwargs: Kwargs.describe('Arguments by name.'),
  expected: Json.describe('What the call returns.'),
  tolerance: z.number().min(0).default(0).describe('How far numbers may be off.'),
});
const Example = z.strictObject({ args: Args, kwargs: Kwargs });

const Parameter = z.strictObject({
  name: z.string().min(1).max(100),
  type: z.string().max(200).default(''),
  description: z.string().max(2_000).default(''),
  required: z.boolean().default(true),
  default_value: Json.optional(),
});

export const RegisterInput = z.strictObject({
  name: SkillName.describe('Small letters, digits and "_"; registering a name again makes a new version.'),
  description: z.string().trim().min(1).max(4_000).describe('What the skill does and when it is useful. Search matches this text.'),
  code: z
    .string()
    .min(1)
    .max(CODE_MAX_CHARS)
    .describe('Python with one function at the top level that does the work. Nothing may run at import.'),
  entry_point: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("The function to call; by default the one with the skill's name, or the only one."),
  parameters: z.array(Parameter).max(50).default([]).describe('Checked against the code. By default they are read from the code.'),
  tests: z.array(Test).max(TESTS_MAX).default([]).describe('Calls with their expected results. Without tests, the examples become tests.'),
  examples: z
    .array(Example)
    .max(TESTS_MAX)
    .default([])
    .describe('Calls without expected results. They run now, and their results become the expected ones.'),
  tags: z.array(z.string().min(1).max(64)).max(50).default([]),
  category: SkillCategory.optional(),
  example_prompts: z.array(z.string().max(1_000)).max(20).default([]),
});

const Output = z.strictObject({
  status: z.enum(['registered', 'pending_review', 'rejected', 'pending_verification']).optional(),
  reason: z.string().optional(),
  skill_name: z.string().optional(),
  skill_id: z.string().optional().describe('Path of the skill over HTTP.'),
  version: z.number().int().optional(),
  tests: z
    .enum(['given', 'recorded'])
    .optional()
    .describe('recorded: made from examples. Such tests show what the code does, not that it is right.'),
  evidence: z.array(z.string()).optional().describe('Findings of verification, one line each.'),
});
type Registered = z.input<typeof Output>;

/** A skill that an agent registers. If `entryPoint` is null, the function with the skill's name is called, or else the only function. */
export interface ToolSkillDraft extends Omit<z.output<typeof RegisterInput>, 'entry_point' | 'tests' | 'examples'> {
  readonly entryPoint: string | null;
  readonly tests: readonly SkillTest[];
}

export interface RegisteredSkill {
  /** `waiting` means that the call's time was over before verification ended. */
  readonly status: 'registered' | 'pending_review' | 'rejected' | 'waiting';
  readonly reason: string;
  readonly name: string;
  readonly version: number;
  readonly evidence: readonly string[];
}

/** Registers skills that agents write. They become candidates, and are verified and approved like all skills. */
export interface SkillRegistrar {
  /** Analyses the code without running it. `runnable` is the code with the skills that it calls in front of it. */
  inspect(
    reader: SkillReader,
    draft: Pick<ToolSkillDraft, 'name' | 'code' | 'entryPoint'>,
    signal: AbortSignal,
  ): Promise<{ readonly problems: readonly string[] } | { readonly entryPoint: string | null; readonly runnable: BundledCode }>;
  /** Returns when verification has ended, or when the call's time is over. Registering the same content again changes nothing. */
  register(reader: SkillReader, draft: ToolSkillDraft, by: string, signal: AbortSignal): Promise<RegisteredSkill>;
}

export interface RegisterSkillToolDeps {
  readonly registrar: SkillRegistrar;
  readonly sandboxes: Sandboxes;
  readonly skillPath: (tenant: string, name: string) => string;
}

/** Registers an agent's skill. A faulty skill is `rejected` with a `reason`. @throws EtudeError of the system, such as SANDBOX_UNAVAILABLE */
export async function registerSkillByTool(
  { examples, tests: given, entry_point: wanted, ...asked }: z.output<typeof RegisterInput>,
  context: ToolContext,
  { registrar, sandboxes, skillPath }: RegisterSkillToolDeps,
  signal: AbortSignal,
): Promise<Registered> {
  const { name, code } = asked;
  const reject = (why: string): Registered => ({ status: 'rejected', reason: why, skill_name: name });
  const isRecorded = given.length === 0;
  if (isRecorded && examples.length === 0)
    return reject('The skill has no tests. Give "tests" (calls with their results) or "examples" (calls alone).');
  const read = await registrar.inspect(context, { name, code, entryPoint: wanted ?? null }, signal);
  if ('problems' in read) return reject(read.problems.join('; '));
  const { entryPoint, runnable } = read;
  if (isRecorded && entryPoint === null)
    return reject('The code has no function to call. Put the work into one function at the top of the code.');
  const made = isRecorded
    ? await recordTests({ code: runnable, entryPoint: entryPoint ?? '', examples }, context, sandboxes, signal)
    : { tests: given.map((test) => ({ kind: 'call' as const, ...test })) };
  if ('problem' in made) return reject(made.problem);
  const draft = { ...asked, entryPoint, tests: made.tests };
  const { status, reason, version, evidence, ...stored } = await registrar.register(context, draft, context.by, signal);
  return {
    status: status === 'waiting' ? 'pending_verification' : status,
    ...(reason === '' ? {} : { reason }),
    skill_name: stored.name,
    version,
    tests: isRecorded ? 'recorded' : 'given',
    evidence: [...evidence],
    ...(status === 'rejected' ? {} : { skill_id: skillPath(context.tenant, stored.name) }),
  };
}

export function registerSkillTool(deps: RegisterSkillToolDeps): ToolDefinition {
  return defineTool({
    name: 'register_skill',
    title: 'Register skill',
    description:
      "Registers a function that worked and can be reused as a skill. A sandbox verifies the skill by its tests. The skill is then active at once or after review, as the agent's settings say. Registering the same content again changes nothing.",
    input: RegisterInput,
    output: Output,
    readOnly: false,
    idempotent: true,
    needsSkills: true,
    run: async (asked, context, signal) => ({ success: true, result: await registerSkillByTool(asked, context, deps, signal) }),
  });
}

type ExampleCall = z.output<typeof Example>;

interface Recording {
  readonly code: BundledCode;
  readonly entryPoint: string;
  readonly examples: readonly ExampleCall[];
}

const SEEDS = [undefined, 4_242_424_242] as const;

/**
 * Makes regression tests from calls without expected values. Each call runs twice, under two hash seeds. If both runs return the same value,
 * it becomes the expected value. Such a test shows that the code keeps its behaviour, not that it is right.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY
 */
async function recordTests(
  { code: { code, template }, entryPoint, examples: calls }: Recording,
  { tenant, agent, user }: ToolContext,
  sandboxes: Sandboxes,
  signal: AbortSignal,
): Promise<{ readonly tests: readonly SkillTest[] } | { readonly problem: string }> {
  const id = contentDigest([tenant, agent, user, code, entryPoint, calls]).slice(0, 40);
  const rounds: RunResult[][] = [];
  for (const [at, hashSeed] of SEEDS.entries()) {
    const request = {
      executionId: `record-${id}-${at}`,
      tenant,
      owner: { agent, user },
      files: [],
      limits: LIMITS,
      stopOnFailure: false,
      ...(template === undefined ? {} : { template }),
      runs: calls.map((call) => ({ kind: 'call' as const, code, entryPoint, ...call })),
    };
    const { runs } = await sandboxes.execute(hashSeed === undefined ? request : { ...request, hashSeed }, signal);
    refuseUnfinished(calls.length, runs);
    rounds.push(runs);
  }
  const problem = calls.map((call, at) => problemOf(call, rounds[0]?.[at], rounds[1]?.[at])).find((one) => one !== '');
  if (problem !== undefined) return { problem };
  return { tests: calls.map((call, at) => ({ kind: 'call', ...call, expected: rounds[0]?.[at]?.value ?? null, tolerance: 0 })) };
}

function problemOf(call: ExampleCall, first: RunResult | undefined, second: RunResult | undefined): string {
  const what = `The example ${JSON.stringify({ args: call.args, kwargs: call.kwargs }).slice(0, 300)}`;
  if (first?.exit !== 'ok' || second?.exit !== 'ok') {
    const { error, exit = 'nothing' } = (first?.exit === 'ok' ? second : first) ?? {};
    return `${what} failed: ${error === undefined ? `the run ended with ${exit}` : `${error.type}: ${error.message}`}`;
  }
  if (!sameValue(second.value, first.value, 0)) return `${what} returns a different value each time, so it can't become a test`;
  if (JSON.stringify(first.value ?? null).includes('"$repr"'))
    return `${what} returns a value that JSON can't hold; give tests, or return plain values`;
  return '';
}
