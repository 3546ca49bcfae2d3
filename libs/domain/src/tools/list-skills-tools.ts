import type { Skill } from '@etude/contracts/memory';
import { SkillCategory } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { defineTool, type ToolDefinition } from './tool-definition.js';
import type { SkillFinder } from './tool-ports.js';

/** What has no category is listed under this name, which no category can have. */
const NONE = '(none)';
const LISTED_MAX = 200;

const Category = z.strictObject({ id: z.string(), skill_count: z.number().int() });
const CategoryId = z.union([SkillCategory, z.literal(NONE)]);

/** Skills by category: where nobody knows what to search for. */
export function listSkillsTools(finder: SkillFinder): readonly ToolDefinition[] {
  return [listSkillCategories(finder), listSubcategories(finder), listSkills(finder)];
}

function listSkillCategories(finder: SkillFinder): ToolDefinition {
  return defineTool({
    name: 'list_skill_categories',
    title: 'List skill categories',
    description: 'Lists the categories at the top, with how many skills each holds. To find a skill for a task, search.',
    input: z.strictObject({}),
    output: z.strictObject({ categories: z.array(Category).optional() }),
    readOnly: true,
    idempotent: true,
    needsSkills: true,
    async run(_args, context) {
      const categories = counted(await finder.list(context), (skill) => categoryOf(skill).split('.')[0] ?? NONE);
      return { success: true, result: { categories } };
    },
  });
}

function listSubcategories(finder: SkillFinder): ToolDefinition {
  return defineTool({
    name: 'list_subcategories',
    title: 'List subcategories',
    description: 'Lists the categories directly below one, with how many skills each holds.',
    input: z.strictObject({ category_id: CategoryId.describe('Whole path of a category, such as "text" or "text.csv".') }),
    output: z.strictObject({ subcategories: z.array(Category).optional() }),
    readOnly: true,
    idempotent: true,
    needsSkills: true,
    async run({ category_id: parent }, context) {
      const below = (await finder.list(context)).filter((skill) => categoryOf(skill).startsWith(`${parent}.`));
      const depth = parent.split('.').length + 1;
      const subcategories = counted(below, (skill) => categoryOf(skill).split('.').slice(0, depth).join('.'));
      return { success: true, result: { subcategories } };
    },
  });
}

function listSkills(finder: SkillFinder): ToolDefinition {
  return defineTool({
    name: 'list_skills',
    title: 'List skills',
    description: `Lists the skills of a category and of those below it, at most ${LISTED_MAX}.`,
    input: z.strictObject({ subcategory_id: CategoryId.describe('Whole path of a category; "(none)" for skills without one.') }),
    output: z.strictObject({
      skills: z
        .array(z.strictObject({ name: z.string(), category: z.string(), description: z.string(), version: z.number().int() }))
        .optional(),
      total: z.number().int().optional(),
    }),
    readOnly: true,
    idempotent: true,
    needsSkills: true,
    async run({ subcategory_id: category }, context) {
      const inside = (await finder.list(context)).filter((skill) => `${categoryOf(skill)}.`.startsWith(`${category}.`));
      const shown = inside.slice(0, LISTED_MAX);
      await finder.countOffers(shown);
      return { success: true, result: { skills: shown.map(lineOf), total: inside.length } };
    },
  });
}

const lineOf = (skill: Skill) => ({
  name: skill.name,
  category: skill.category ?? '',
  description: skill.description,
  version: skill.version,
});

const categoryOf = ({ category }: Skill): string => category ?? NONE;

function counted(skills: readonly Skill[], idOf: (skill: Skill) => string): Array<z.infer<typeof Category>> {
  const counts = new Map<string, number>();
  for (const skill of skills) counts.set(idOf(skill), (counts.get(idOf(skill)) ?? 0) + 1);
  return [...counts].map(([id, count]) => ({ id, skill_count: count })).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
