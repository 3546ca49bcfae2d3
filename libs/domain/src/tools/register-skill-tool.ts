import { SkillName } from '@etude/contracts/ids';
import { Json } from '@etude/contracts/json';
import { SkillCategory } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import type { Sandboxes } from '../ports/sandboxes.js';
import { CODE_MAX_CHARS } from './execute-code.js';
import { recordTests } from './record-tests.js';
import { defineTool, type ToolContext, type ToolDefinition } from './tool-definition.js';
import type { SkillRegistrar, ToolSkillDraft } from './tool-ports.js';

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
  name: SkillName.describe('Small letters, digits and "_"; registering a name again makes its next version.'),
  description: z.string().trim().min(1).max(4_000).describe('What it does and when it is useful; it is found by this.'),
  code: z.string().min(1).max(CODE_MAX_CHARS).describe('Python with one function at the top that does the work; nothing runs at import.'),
  entry_point: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe("The function to call; by default the one with the skill's name, or the only one."),
  parameters: z.array(Parameter).max(50).default([]).describe('Checked against the code; left out, they are read from it.'),
  tests: z.array(Test).max(TESTS_MAX).default([]).describe('Calls with what they must return. Without any, tests are made from examples.'),
  examples: z.array(Example).max(TESTS_MAX).default([]).describe('Calls that are run now; what they return is expected from now on.'),
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
    .describe('recorded: made from examples; they say what the code does, not that it is right.'),
  evidence: z.array(z.string()).optional().describe('What verification found, one line each.'),
});
type Registered = z.input<typeof Output>;

export interface RegisterSkillToolDeps {
  readonly registrar: SkillRegistrar;
  readonly sandboxes: Sandboxes;
  /** Path of a skill over HTTP. */
  readonly skillPath: (tenant: string, name: string) => string;
}

/**
 * Registers a skill that an agent wrote. Faults in it give the answer `rejected` with the reason.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE and other system errors
 */
export async function registerSkillByTool(
  { examples, tests: given, ...asked }: z.output<typeof RegisterInput>,
  context: ToolContext,
  { registrar, sandboxes, skillPath }: RegisterSkillToolDeps,
  signal: AbortSignal,
): Promise<Registered> {
  const { name, code, entry_point: wanted = null } = asked;
  const reject = (why: string): Registered => ({ status: 'rejected', reason: why, skill_name: name });
  const isRecorded = given.length === 0;
  if (isRecorded && examples.length === 0)
    return reject(
      'It has no tests, so nothing can show that it works. Give "tests" (calls with what they return) or "examples" (calls alone).',
    );
  const read = await registrar.inspect(context, { name, code, entryPoint: wanted }, signal);
  if ('problems' in read) return reject(read.problems.join('; '));
  const { entryPoint, runnable } = read;
  if (isRecorded && entryPoint === null)
    return reject('It has no function to call. Put the work into one function at the top of the code.');
  const made = isRecorded
    ? await recordTests({ code: runnable, entryPoint: entryPoint ?? '', examples }, context, sandboxes, signal)
    : { tests: given.map((test) => ({ kind: 'call' as const, ...test })) };
  if ('problem' in made) return reject(made.problem);
  const { status, reason, version, evidence, ...stored } = await registrar.register(
    context,
    { ...draftOf(asked), entryPoint, tests: made.tests },
    context.by,
    signal,
  );
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

function draftOf(asked: Omit<z.output<typeof RegisterInput>, 'tests' | 'examples'>): Omit<ToolSkillDraft, 'tests' | 'entryPoint'> {
  const { name, description, code, tags, category = null, example_prompts: examplePrompts } = asked;
  const parameters = asked.parameters.map(({ default_value: defaultValue, ...one }) =>
    defaultValue === undefined ? one : { ...one, defaultValue },
  );
  return { name, description, code, tags, category, examplePrompts, parameters };
}

export function registerSkillTool(deps: RegisterSkillToolDeps): ToolDefinition {
  return defineTool({
    name: 'register_skill',
    title: 'Register skill',
    description:
      "Registers a function that worked and can be reused as a skill. It is verified in a sandbox by its tests, and then used at once or after review, as the agent's settings say. The same content again changes nothing.",
    input: RegisterInput,
    output: Output,
    readOnly: false,
    idempotent: true,
    needsSkills: true,
    run: async (asked, context, signal) => ({ success: true, result: await registerSkillByTool(asked, context, deps, signal) }),
  });
}
