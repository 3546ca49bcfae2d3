import { z } from 'zod';
import { errorCode } from '@etude/contracts/errors';
import { SkillName } from '@etude/contracts/ids';
import type { SandboxFile } from '@etude/contracts/sandbox';
import { parametersOf } from './search-tool.js';
import type { SkillWish, SkillWishes, ToolContext, ToolDefinition, ToolOutcome, ToolSkills } from './tool-definition.js';
import { defineTool } from './tool-definition.js';

export interface UseSkillToolDeps {
  readonly skills: Pick<ToolSkills, 'find' | 'use'>;
  readonly wishes: SkillWishes;
}

const Input = z.strictObject({
  skill_id: z
    .string()
    .min(1)
    .max(400)
    .describe('Name of the skill, as search returns it, such as "parse_csv". Its category may precede it: "text.csv.parse_csv".'),
  parameters: z.record(z.string(), z.unknown()).default({}).describe('Arguments by name, as the skill declares them.'),
  action_description: z
    .string()
    .max(2_000)
    .default('')
    .describe('Purpose of this use, in a sentence. If the skill does not exist, this text describes the requested skill.'),
  difficulty_modifier: z
    .number()
    .default(0)
    .describe('How much harder than usual the action is. It is passed to a skill that has this parameter.'),
});
type UseOfSkill = z.output<typeof Input> & { readonly files?: readonly SandboxFile[] };

const Output = z.strictObject({
  skill: z.string().optional(),
  version: z.number().int().optional(),
  result: z.unknown().optional().describe('What the skill returned, as JSON.'),
  output: z.string().optional().describe('Text that the skill printed.'),
  duration_ms: z.number().optional(),
  note: z.string().optional().describe('What of the result was changed for JSON, and what of the call the skill does not take.'),
  skill_request_submitted: z.boolean().optional().describe('The skill does not exist and was requested.'),
  request_id: z.string().optional().describe('Id of the request.'),
});
type UsedSkill = z.input<typeof Output>;

/**
 * Runs a skill without a model. A skill that doesn't exist is requested.
 *
 * @throws EtudeError FAILED_PRECONDITION if the skill's code differs from the code that its proof covers; SANDBOX_UNAVAILABLE and other system errors
 */
export async function useSkillByTool(
  { skill_id: skillId, action_description: description, difficulty_modifier: difficulty, files = [], ...given }: UseOfSkill,
  context: ToolContext,
  { skills, wishes }: UseSkillToolDeps,
  signal: AbortSignal,
): Promise<ToolOutcome<UsedSkill>> {
  const name = nameOf(skillId);
  if (!SkillName.safeParse(name).success)
    return {
      success: false,
      error: `"skill_id" is not a valid skill name: ${JSON.stringify(name.slice(0, 100))}. Search for a skill first.`,
    };
  const skill = await skills.find(context, name);
  const declared = new Set(skill === null ? [] : parametersOf(skill).map((parameter) => parameter.name));
  const situation = { ...(description === '' ? {} : { action_description: description }), difficulty_modifier: difficulty };
  const taken = Object.fromEntries(Object.entries(situation).filter(([parameter]) => declared.has(parameter)));
  const parameters = { ...taken, ...given.parameters };
  const used = await skills.use(context, { name, parameters, files, useId: context.callId }, signal);
  if (used === null) {
    const example = Object.keys(parameters).length === 0 ? null : parameters;
    return askFor({ name, description, example }, context, wishes);
  }
  const { version, result, output, durationMs, error, resultNote } = used;
  const untaken = difficulty === 0 || declared.has('difficulty_modifier') ? '' : `${used.name} takes no difficulty_modifier.`;
  const notes = [resultNote, untaken].filter((text) => text !== '').join(' ');
  const note = notes === '' ? {} : { note: notes };
  const told: UsedSkill = { skill: used.name, version, result, output, duration_ms: durationMs, ...note };
  return used.success ? { success: true, result: told } : { success: false, error, result: told };
}

async function askFor(wish: SkillWish, context: ToolContext, wishes: SkillWishes): Promise<ToolOutcome<UsedSkill>> {
  try {
    const id = await wishes.request(context, wish);
    return { success: false, error: 'Skill not found', result: { skill_request_submitted: true, request_id: id } };
  } catch (error) {
    if (errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    return { success: false, error: `Skill not found. ${(error as Error).message}`, result: { skill_request_submitted: false } };
  }
}

export function useSkillTool(deps: UseSkillToolDeps): ToolDefinition {
  return defineTool({
    name: 'use_skill',
    title: 'Use skill',
    description: ({ preferSkills, skillSearchThreshold }) =>
      `Runs a verified skill with these arguments, without a model: the same input gives the same output. ` +
      (preferSkills ? `Use it in place of new code for a skill that search finds with a similarity above ${skillSearchThreshold}. ` : '') +
      'Say that you used it. A skill that does not exist is requested.',
    input: Input,
    output: Output,
    readOnly: false,
    idempotent: false,
    needsSkills: true,
    run: (use, context, signal) => useSkillByTool(use, context, deps, signal),
  });
}

/** The skill's name, such as parse_csv for "text.csv.parse_csv", "skills/parse_csv" or "/instances/…/skills/parse_csv". */
const nameOf = (skillId: string) => skillId.split(/[./]/).at(-1) ?? '';
