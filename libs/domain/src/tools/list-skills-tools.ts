import type { Skill } from '@etude/contracts/memory';
import { SkillCategory } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { defineTool, type ToolDefinition } from './tool-definition.js';
import type { SkillFinder } from './tool-ports.js';

/** The name under which skills without a category are listed. No category can have it. */
const NONE = '(none)';
const LISTED_MAX = 200;

const Listed = z.strictObject({ name: z.string(), category: z.string(), description: z.string(), version: z.number().int() });
const Category = z.strictObject({ id: z.string(), skill_count: z.number().int() });
const CategoryId = z.union([SkillCategory, z.literal(NONE)]);

const READS = { readOnly: true, idempotent: true, needsSkills: true } as const;

/** Tools that list skills by category, for agents that don't know what to search for. */
export function listSkillsTools(finder: SkillFinder): readonly ToolDefinition[] {
  return [
    defineTool({
      name: 'list_skill_categories',
      title: 'List skill categories',
      description: 'Lists the categories at the top, with how many skills each holds. To find a skill for a task, search.',
      input: z.strictObject({}),
      output: z.strictObject({ categories: z.array(Category).optional() }),
      ...READS,
      run: async (_args, context) => ({ success: true, result: { categories: counted(await finder.list(context), 1) } }),
    }),
    defineTool({
      name: 'list_subcategories',
      title: 'List subcategories',
      description: 'Lists the categories directly below one, with how many skills each holds.',
      input: z.strictObject({ category_id: CategoryId.describe('Whole path of a category, such as "text" or "text.csv".') }),
      output: z.strictObject({ subcategories: z.array(Category).optional() }),
      ...READS,
      async run({ category_id: parent }, context) {
        const below = (await finder.list(context)).filter((skill) => categoryOf(skill).startsWith(`${parent}.`));
        return { success: true, result: { subcategories: counted(below, parent.split('.').length + 1) } };
      },
    }),
    defineTool({
      name: 'list_skills',
      title: 'List skills',
      description: `Lists the skills of a category and of those below it, at most ${LISTED_MAX}.`,
      input: z.strictObject({ subcategory_id: CategoryId.describe('Whole path of a category; "(none)" for skills without one.') }),
      output: z.strictObject({ skills: z.array(Listed).optional(), total: z.number().int().optional() }),
      ...READS,
      async run({ subcategory_id: id }, context) {
        const inside = (await finder.list(context)).filter((skill) => `${categoryOf(skill)}.`.startsWith(`${id}.`));
        const shown = inside.slice(0, LISTED_MAX);
        await finder.countOffers(shown);
        const skills = shown.map(({ name, category = '', description, version }) => ({ name, category, description, version }));
        return { success: true, result: { skills, total: inside.length } };
      },
    }),
  ];
}

const categoryOf = ({ category }: Skill): string => category ?? NONE;

function counted(skills: readonly Skill[], depth: number): Array<z.infer<typeof Category>> {
  const groups = Map.groupBy(skills, (skill) => categoryOf(skill).split('.').slice(0, depth).join('.'));
  return [...groups].map(([id, inside]) => ({ id, skill_count: inside.length })).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
