import { SkillName } from '@etude/contracts/ids';
import { Json } from '@etude/contracts/json';
import { z } from 'zod';
import { CODE_MAX_CHARS, executeCode, type ExecuteCodeDeps } from './execute-code.js';
import { executeInSession, NO_SESSION, readSessionFiles, type SessionCodeDeps, withoutFiles } from './execute-in-session.js';
import { RegisterInput, registerSkillByTool, type RegisterSkillToolDeps } from './register-skill-tool.js';
import { foundSkill, FoundSkill, offeredSkills, QUERY_MAX_CHARS, RESULTS_MAX, SIMILARITY_MIN } from './search-tool.js';
import { defineTool, skillsAreOff, type ToolContext, type ToolDefinition, type ToolOutcome } from './tool-definition.js';
import { useSkillByTool, type UseSkillToolDeps } from './use-skill-tool.js';

export type CodeInterpreterDeps = ExecuteCodeDeps & SessionCodeDeps & RegisterSkillToolDeps & UseSkillToolDeps;

const Input = z.strictObject({
  prompt: z
    .string()
    .max(CODE_MAX_CHARS)
    .default('')
    .describe('The task to search for, or the Python code to execute or register. use_skill needs no prompt.'),
  file_names: z
    .array(z.string().min(1).max(512))
    .max(100)
    .default([])
    .describe('Files of the session that the code or the skill reads. A missing file is reported before anything runs.'),
  operation: z.enum(['execute', 'search_skills', 'use_skill', 'register_skill']).default('execute'),
  skill_name: z.string().max(400).default('').describe('For use_skill and register_skill.'),
  skill_description: z.string().max(4_000).default('').describe('For register_skill: what the skill does and when it is useful.'),
  skill_parameters: z
    .record(z.string(), Json)
    .default({})
    .describe('For use_skill: the arguments. For register_skill: arguments of an example call that tests the skill.'),
});
type Input = z.output<typeof Input>;

/** Each operation sets only its own fields, but `execute` and `use_skill` set the same fields. */
const Output = z.strictObject({
  results: z.array(z.unknown()).optional().describe('Value of the last expression, or of the skill. Empty if there is no value.'),
  output: z.string().optional().describe('The printed text.'),
  files: z.array(z.string()).optional().describe('Paths of the files in the session after the call.'),
  sandbox: z.string().optional().describe("Name of the session's sandbox. Files are uploaded and downloaded under this name."),
  note: z
    .string()
    .optional()
    .describe("State that was lost since the previous call, with the reason, or parts of a skill's result that were changed."),
  skills: z.array(FoundSkill).optional(),
  status: z.enum(['registered', 'pending_review', 'rejected', 'pending_verification']).optional(),
  reason: z.string().optional(),
  skill_name: z.string().optional(),
  skill_id: z.string().optional(),
  skill_request_submitted: z.boolean().optional(),
  request_id: z.string().optional(),
});
type Answer = ToolOutcome<z.input<typeof Output>>;

/** One tool with four operations. Many agents already know a tool named "code_interpreter". */
export function codeInterpreterTool(deps: CodeInterpreterDeps): ToolDefinition {
  return defineTool({
    name: 'code_interpreter',
    title: 'Code interpreter',
    description: ({ enabled, preferSkills, skillSearchThreshold }) =>
      'Executes Python code, and finds, uses and registers skills: verified functions that answer without a model. ' +
      'A named session keeps variables and files from one execution to the next for some minutes. ' +
      (enabled && preferSkills
        ? `Search first (operation search_skills). With a similarity above ${skillSearchThreshold} use the skill (use_skill); otherwise execute. Register what worked and can be reused (register_skill). Say so when you used a skill.`
        : 'Operations: execute (the default), search_skills, use_skill, register_skill. Say so when you used a skill.'),
    input: Input,
    output: Output,
    readOnly: false,
    idempotent: false,
    async run(args, context, signal) {
      const { operation, prompt } = args;
      if (prompt === '' && operation !== 'use_skill') return failed(`Wrong arguments. "prompt" is missing: ${operation} needs it.`);
      const off = operation === 'execute' ? null : skillsAreOff(context);
      if (off !== null) return failed(off);
      return OPERATIONS[operation](args, context, deps, signal);
    },
  });
}

type Operation = (args: Input, context: ToolContext, deps: CodeInterpreterDeps, signal: AbortSignal) => Promise<Answer>;

const failed = (error: string): Answer => ({ success: false, error });

const OPERATIONS: Readonly<Record<Input['operation'], Operation>> = {
  /** Runs in the session's sandbox. If the session has no sandbox and the code needs no files, runs in a fresh sandbox. */
  async execute({ prompt: code, file_names: fileNames }, context, deps, signal) {
    const execution = await executeInSession({ code, fileNames }, context, deps, signal);
    if (!('unavailable' in execution)) return execution;
    const why = execution.unavailable;
    if (fileNames.length > 0) throw withoutFiles(fileNames, why);
    const { error, result: ran } = await executeCode(code, context, deps, signal);
    const result = {
      results: ran.result === undefined ? [] : [ran.result],
      output: [ran.stdout, ran.stderr].filter((text) => text !== '').join('\n'),
      files: [],
      ...(context.session === NO_SESSION ? {} : { note: `The session keeps nothing of this call: ${why}.` }),
    };
    return error === '' ? { success: true, result } : { success: false, error, result };
  },

  async search_skills({ prompt }, context, { skills }) {
    const text = prompt.slice(0, QUERY_MAX_CHARS);
    const hits = await offeredSkills({ text, limit: RESULTS_MAX, similarityMin: SIMILARITY_MIN }, context, skills);
    return { success: true, result: { skills: hits.map(foundSkill) } };
  },

  async use_skill(args, context, deps, signal) {
    const { prompt, skill_name: name, skill_parameters: parameters, file_names: fileNames } = args;
    if (name === '') return failed('Wrong arguments. "skill_name" is missing: name the skill to use.');
    const files = await readSessionFiles(fileNames, context, deps, signal);
    const use = { skill_id: name, parameters, action_description: prompt.slice(0, 2_000), difficulty_modifier: 0, files };
    const outcome = await useSkillByTool(use, context, deps, signal);
    const { result, output = '', note, skill_request_submitted: asked, request_id: requestId } = outcome.result ?? {};
    const told =
      asked !== undefined
        ? { skill_request_submitted: asked, ...(requestId === undefined ? {} : { request_id: requestId }) }
        : { results: result === undefined || result === null ? [] : [result], output, files: [], ...(note === undefined ? {} : { note }) };
    return outcome.success ? { success: true, result: told } : { success: false, error: outcome.error, result: told };
  },

  async register_skill(args, context, deps, signal) {
    const { prompt: code, skill_name: name, skill_description: description, skill_parameters: example } = args;
    if (!SkillName.safeParse(name).success)
      return failed('Wrong arguments. "skill_name" must hold only small letters, digits and "_", such as "sum_of_squares".');
    if (description.trim() === '')
      return failed('Wrong arguments. "skill_description" is missing: say what the skill does and when it is useful.');
    const draft = { name, description: description.trim(), code, examples: [{ kwargs: example }] };
    const { status, reason, skill_name, skill_id } = await registerSkillByTool(RegisterInput.parse(draft), context, deps, signal);
    return { success: true, result: { status, reason, skill_name, skill_id } };
  },
};
