import { EtudeError } from '@etude/contracts/errors';
import type { DiffSkillResponseSchema, Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { SkillCategory } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { searchSkills, type SkillSearch } from '@etude/domain/skills/life/find-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { z } from 'zod';
import { boundedCount, parseField, snakeCase } from '@etude/contracts/wire/validation';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { createTwoFilesPatch } from 'diff';
import type { Handlers } from '../calls/calls.js';
import {
  type AskedSkills,
  askedSkills,
  briefMessage,
  checkedVersion,
  skillMessage,
  skillNamed,
  statusFilterOf,
  viewsOf,
} from '../readers/readers.js';
import { everySkillBehind, placeOf } from '../readers/skill-lists.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { askedPage } from '../wire/names.js';

const PAGE = { max: 1_000, standard: 50 };
const RESULTS = { max: 100, standard: 5 };
const SIMILARITY_MIN = 0.7;
/** A search with tags looks for this many times the hits, because tags are filtered afterwards. */
const PER_TAGGED_HIT = 10;

const Tags = z.array(z.string().min(1).max(64)).max(50);
const Query = z.string().trim().min(1, 'must not be empty').max(100_000, 'must not be longer than 100000 characters');
const Fraction = z.number().min(0, 'must be between 0 and 1').max(1, 'must be between 0 and 1');

export const readCalls = {
  async listSkills(request, call, deps) {
    const asked = askedSkills(call, request);
    const filter = {
      status: statusFilterOf(request.status),
      category: categoryOf(request.category, 'category'),
      tags: parseField(Tags, request.tags, 'tags'),
    };
    const { limit, after, cut } = askedPage(request, PAGE, ['ListSkills', asked, filter]);
    const { procedural } = await deps.memory.open();
    const page: Skill[] = [];
    const { signal } = call;
    for await (const skill of everySkillBehind(procedural, asked, filter, after)) {
      signal.throwIfAborted();
      if (page.push(skill) === limit) break;
    }
    const { items, nextPageToken } = cut(page, placeOf);
    return { skills: items.map(request.brief ? briefMessage : skillMessage), nextPageToken };
  },

  async getSkill(request, call, deps) {
    const asked = askedSkills(call, request);
    const { procedural } = await deps.memory.open();
    return skillMessage(await skillNamed(procedural, asked, request.name, request.version));
  },

  async searchSkills(request, call, deps) {
    const asked = askedSkills(call, request);
    const text = parseField(Query, request.query, 'query');
    const tags = parseField(Tags, request.tags, 'tags');
    const similarityMin = parseField(Fraction, request.minSimilarity ?? SIMILARITY_MIN, 'min_similarity');
    const limit = boundedCount(request.maxResults, 'max_results', RESULTS);
    const { procedural } = await deps.memory.open();
    const { tenant, agent, user } = asked;
    const query = { text, limit, similarityMin, tags };
    const isAgents = agent !== null && !agent.startsWith('@');
    const hits = isAgents ? await searchSkills(procedural, { tenant, agent, user }, query) : await searchEvery(procedural, asked, query);
    // Search hits count as offers to the agent. The write isn't awaited, because it would delay this call. A lost count does no harm.
    if (isAgents) setImmediate(() => void procedural.countOffers(hits.map(({ skill }) => keyOf(skill))).catch(() => undefined));
    return { hits: hits.map(({ skill, similarity }) => ({ skill: skillMessage(skill), similarity })) };
  },

  async listSkillCategories(request, call, deps) {
    const asked = askedSkills(call, request);
    const parent = categoryOf(request.parent, 'parent');
    const { procedural } = await deps.memory.open();
    const { signal } = call;
    const counts = new Map<string, number>();
    for await (const { category } of everySkillBehind(procedural, asked, { status: 'active', category: parent, tags: [] }, null)) {
      signal.throwIfAborted();
      const child = childOf(parent, category);
      if (child !== null) counts.set(child, (counts.get(child) ?? 0) + 1);
    }
    const categories = [...counts].map(([category, skillCount]) => ({ category, skillCount }));
    return { categories: categories.toSorted((a, b) => (a.category < b.category ? -1 : 1)) };
  },

  async listSkillVersions(request, call, deps) {
    const asked = askedSkills(call, request);
    const { procedural } = await deps.memory.open();
    const newest = await skillNamed(procedural, asked, request.name);
    return { skills: (await procedural.versions(newest.scope, newest.name)).map(skillMessage) };
  },

  async diffSkill(request, call, deps) {
    const asked = askedSkills(call, request);
    const { procedural } = await deps.memory.open();
    const newest = await skillNamed(procedural, asked, request.name);
    const versions = await procedural.versions(newest.scope, newest.name);
    const to = request.toVersion === 0 ? newest : versionIn(versions, request.toVersion, 'to_version');
    const before = versions.find(({ version }) => version < to.version) ?? null;
    const from = request.fromVersion === 0 ? before : versionIn(versions, request.fromVersion, 'from_version');
    return skillDiff(from, to, false);
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** Searches all agents, or exactly the shared skills; best hits first. */
async function searchEvery(procedural: ProceduralMemory, asked: AskedSkills, { tags = [], limit, ...query }: SkillSearch) {
  const wide = { ...query, limit: tags.length > 0 ? limit * PER_TAGGED_HIT : limit };
  const found = await Promise.all(viewsOf(asked).map((view) => procedural.search(view, wide)));
  const tagged = found.flat().filter(({ skill }) => tags.every((tag) => skill.tags.includes(tag)));
  return tagged.toSorted((a, b) => b.score - a.score).slice(0, limit);
}

function versionIn(versions: readonly Skill[], version: number, field: string): Skill {
  const wanted = checkedVersion(version, field);
  const found = versions.find((one) => one.version === wanted);
  if (found === undefined) throw new EtudeError('NOT_FOUND', `The skill has no version ${wanted}; list its versions.`, { field });
  return found;
}

function categoryOf(category: string, field: string): string | undefined {
  return category === '' ? undefined : parseField(SkillCategory, category, field);
}

/** The category directly below `parent` that has the skill; null if no such category has it. */
function childOf(parent: string | undefined, category: string | undefined): string | null {
  if (category === undefined || category === parent) return null;
  const depth = parent === undefined ? 1 : parent.split('.').length + 1;
  return category.split('.').slice(0, depth).join('.');
}

const FIELDS = [
  'kind',
  'description',
  'entryPoint',
  'parameters',
  'tags',
  'displayName',
  'category',
  'examplePrompts',
  'dependencies',
  'packages',
  'files',
  'metadata',
] as const satisfies ReadonlyArray<keyof Skill>;

/**
 * The changes between two versions as unified diffs; empty without changes.
 *
 * @param from null: no earlier version
 * @param withTests whether to show tests, which may be made from hidden cases; for reviewers
 */
export function skillDiff(from: Skill | null, to: Skill, withTests: boolean): MessageInitShape<typeof DiffSkillResponseSchema> {
  return {
    fromVersion: from?.version ?? 0,
    toVersion: to.version,
    codeDiff: unified('code.py', from, to, ({ code }) => code),
    fieldsDiff: unified('skill.json', from, to, (skill) => fieldsText(skill, withTests)),
  };
}

function unified(file: string, from: Skill | null, to: Skill, textOf: (skill: Skill) => string): string {
  const [before, after] = [from === null ? '' : textOf(from), textOf(to)];
  if (before === after) return '';
  const name = (skill: Skill | null) => (skill === null ? '/dev/null' : `${skill.name}@${skill.version}/${file}`);
  return createTwoFilesPatch(name(from), name(to), before, after);
}

/** The fields as text, in a fixed order with one value per line. Held-out tests are only counted. */
function fieldsText(skill: Skill, withTests: boolean): string {
  const shown = FIELDS.flatMap((field) => {
    const value = skill[field];
    return value === undefined || (Array.isArray(value) && value.length === 0) ? [] : [[snakeCase(field), value] as const];
  });
  const tests = withTests ? { tests: skill.tests } : { test_count: skill.tests.length };
  return `${JSON.stringify({ ...Object.fromEntries(shown), ...tests, held_out_count: skill.heldOut?.length ?? 0 }, null, 2)}\n`;
}
