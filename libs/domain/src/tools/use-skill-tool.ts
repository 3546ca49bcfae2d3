import { z } from 'zod';
import { errorCode } from '@etude/contracts/errors';
import { SkillName } from '@etude/contracts/ids';
import { wrongName } from '../skills/life/register-skill.js';
import { misspelledOf } from '../skills/proof/call-arguments.js';
import { defineTool, type ToolContext, type ToolDefinition, type ToolOutcome } from './tool-definition.js';
import type { SkillFinder, SkillRunner, SkillWish, SkillWishes } from './tool-ports.js';

export interface UseSkillToolDeps {
  readonly finder: SkillFinder;
  readonly runner: SkillRunner;
  readonly wishes: SkillWishes;
}

const Input = z.strictObject({
  skill_id: z
    .string()
    .min(1)
    .max(400)
    .describe(
      'Name of the skill as search tells it, such as "parse_csv"; its category, where it has one, may stand before it: "text.csv.parse_csv".',
    ),
  parameters: z.record(z.string(), z.unknown()).default({}).describe('Arguments by name, as the skill declares them.'),
  action_description: z
    .string()
    .max(2_000)
    .default('')
    .describe('What it is to do here, in a sentence. Where there is no such skill, one is asked for by it.'),
  difficulty_modifier: z.number().default(0).describe('For skills that take one: how much harder than usual it is.'),
});
type Input = z.output<typeof Input>;

const Output = z.strictObject({
  skill: z.string().optional(),
  version: z.number().int().optional(),
  result: z.unknown().optional().describe('What the skill returned, as JSON.'),
  output: z.string().optional().describe('What it printed.'),
  duration_ms: z.number().optional(),
  note: z
    .string()
    .optional()
    .describe('What to call it by the next time, and which numbers and texts of the result are not as they were returned.'),
  skill_request_submitted: z.boolean().optional().describe('There is no such skill, and it was asked for.'),
  request_id: z.string().optional().describe('Of that request.'),
});
export type UsedSkill = z.input<typeof Output>;

/**
 * Runs a skill without a model. One that is not there is asked for, where a skill of its name could be registered, it is no misspelled one,
 * and where no skill of another category has it.
 *
 * @throws EtudeError FAILED_PRECONDITION where its code is not what was proven; SANDBOX_UNAVAILABLE and other faults of the system
 */
export async function useSkillByTool(
  asked: { readonly skillId: string; readonly parameters: Input['parameters']; readonly description: string },
  context: ToolContext,
  { finder, runner, wishes }: UseSkillToolDeps,
  signal: AbortSignal,
): Promise<ToolOutcome<UsedSkill>> {
  const { name, category } = partsOf(asked.skillId);
  if (!SkillName.safeParse(name).success)
    return { success: false, error: `"skill_id" is no name of a skill: ${JSON.stringify(name.slice(0, 100))}. Search for one first.` };
  const elsewhere = await elsewhereOf(name, category, context, finder);
  if (elsewhere !== null) return { success: false, error: notFoundBut(elsewhere) };
  const used = await runner.use(context, { name, parameters: asked.parameters, useId: context.callId }, signal);
  if (used === null) {
    const known = (await finder.list(context)).map((skill) => skill.name);
    const meant = misspelledOf(name, known);
    if (meant !== null) return { success: false, error: notFoundBut(meant) };
    const wrong = wrongName(name);
    if (wrong !== null) return { success: false, error: notFoundFor(wrong) };
    const example = Object.keys(asked.parameters).length === 0 ? null : asked.parameters;
    return askFor({ name, description: asked.description, example }, context, wishes);
  }
  const { version, result, output, durationMs, error, resultNote } = used;
  const notes = [category === '' ? '' : await noteOfCategory(name, category, context, finder), resultNote].filter((note) => note !== '');
  const note = notes.length === 0 ? {} : { note: notes.join(' ') };
  const told: UsedSkill = { skill: used.name, version, result, output, duration_ms: durationMs, ...note };
  return used.success ? { success: true, result: told } : { success: false, error, result: told };
}

/** An agent that has asked for many is told that this one was not. */
async function askFor(wish: SkillWish, context: ToolContext, wishes: SkillWishes): Promise<ToolOutcome<UsedSkill>> {
  try {
    const id = await wishes.request(context, wish);
    return { success: false, error: 'Skill not found', result: { skill_request_submitted: true, request_id: id } };
  } catch (error) {
    if (errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    return { success: false, error: `Skill not found. ${(error as Error).message}`, result: { skill_request_submitted: false } };
  }
}

/** What is said in place of asking for one more of nearly the same name. */
export const notFoundBut = (meant: string) =>
  `Skill not found; did you mean "${meant}"? Nothing was asked for; request a skill of the other name where it is another one.`;

/** What is said in place of asking for one that nobody could register. */
export const notFoundFor = (wrong: string) => `Skill not found, and nothing was asked for: ${wrong}. Ask for it by another name.`;

export function useSkillTool(deps: UseSkillToolDeps): ToolDefinition {
  return defineTool({
    name: 'use_skill',
    title: 'Use skill',
    description: ({ preferSkills, skillSearchThreshold }) =>
      `Runs a verified skill with these arguments, without a model: the same input gives the same output. ` +
      (preferSkills ? `Use it in place of new code for a skill that search finds with a similarity above ${skillSearchThreshold}. ` : '') +
      'Say that you used it. A skill that does not exist is asked for.',
    input: Input,
    output: Output,
    readOnly: false,
    idempotent: false,
    needsSkills: true,
    async run({ skill_id: skillId, parameters, action_description: description, difficulty_modifier: difficulty }, context, signal) {
      const given = await withSituation(
        parameters,
        { action_description: description, difficulty_modifier: difficulty },
        skillId,
        context,
        deps,
      );
      return useSkillByTool({ skillId, parameters: given, description }, context, deps, signal);
    },
  });
}

/** Such a skill's name with its category, where that is another than the one that was named. One that has none is meant by its name alone. */
async function elsewhereOf(name: string, category: string, context: ToolContext, finder: SkillFinder): Promise<string | null> {
  if (category === '') return null;
  const found = await finder.find(context, name);
  return found?.category === undefined || found.category === category ? null : `${found.category}.${name}`;
}

async function noteOfCategory(name: string, category: string, context: ToolContext, finder: SkillFinder): Promise<string> {
  const found = await finder.find(context, name);
  return found === null || found.category !== undefined ? '' : `${name} has no category; call it "${name}", not "${category}.${name}".`;
}

/** A skill that declares a parameter for what it is to do here, or for how hard that is, is told so. */
async function withSituation(
  parameters: Input['parameters'],
  situation: Readonly<Record<string, unknown>>,
  skillId: string,
  context: ToolContext,
  { finder }: UseSkillToolDeps,
): Promise<Input['parameters']> {
  const said = Object.entries(situation).filter(([name, value]) => !(name in parameters) && value !== '' && value !== 0);
  if (said.length === 0) return parameters;
  const skill = await finder.find(context, partsOf(skillId).name);
  const declared = new Set((skill?.contract?.parameters ?? skill?.parameters ?? []).map(({ name }) => name));
  return { ...parameters, ...Object.fromEntries(said.filter(([name]) => declared.has(name))) };
}

/** "text.csv.parse_csv", "skills/parse_csv" and "/instances/…/skills/parse_csv" all name parse_csv. */
function partsOf(skillId: string): { readonly name: string; readonly category: string } {
  const path = skillId.split('/').at(-1) ?? '';
  const cut = path.lastIndexOf('.');
  return { name: path.slice(cut + 1), category: cut === -1 ? '' : path.slice(0, cut) };
}
