import { toJson } from '@bufbuild/protobuf';
import {
  ListSkillCategoriesResponseSchema,
  ListSkillVersionsResponseSchema,
  SearchSkillsResponseSchema,
  type Skill,
  SkillSchema,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { plural, table } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { skillTable, skillText, statusOf, type StatusWord } from './skill-lines.js';
import { type ReaderOptions, skillReference, wholeSkill } from './skill-reference.js';

const PAGE_MAX = 1_000;

export interface SkillListOptions extends ReaderOptions {
  readonly status?: StatusWord;
  readonly category?: string;
  readonly tag?: readonly string[];
  readonly limit: number;
}

/** All pages up to `limit`. */
export async function fetchSkills(
  gateway: Gateway,
  { agent = '', user = '', status, category = '', tag = [], limit }: SkillListOptions,
  call: { timeoutMs: number; signal: AbortSignal },
): Promise<Skill[]> {
  const skills: Skill[] = [];
  const narrowed = { agent, user, category, tags: [...tag], status: statusOf(status) };
  let pageToken = '';
  do {
    const page = await gateway.skills.listSkills({ ...narrowed, pageToken, pageSize: Math.min(limit - skills.length, PAGE_MAX) }, call);
    skills.push(...page.skills);
    pageToken = page.nextPageToken;
  } while (pageToken && skills.length < limit);
  return skills;
}

export function listSkills(cli: Cli, options: SkillListOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const skills = await fetchSkills(gateway, options, callSettings(cli));
    cli.out.data({ skills: skills.map((skill) => toJson(SkillSchema, skill)) }, skills.length > 0 ? skillTable(skills) : '');
    if (skills.length === 0) cli.out.note('no skills');
    return EXIT.ok;
  });
}

export function getSkill(
  cli: Cli,
  skill: string,
  { code = false, ...reader }: ReaderOptions & { readonly code?: boolean },
): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.skills.getSkill(skillReference(skill, reader), callSettings(cli));
    cli.out.data(toJson(SkillSchema, found), code ? found.code : skillText(found));
    return EXIT.ok;
  });
}

export function listVersions(cli: Cli, skill: string, reader: ReaderOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.skills.listSkillVersions(wholeSkill(skill, reader), callSettings(cli));
    cli.out.data(toJson(ListSkillVersionsResponseSchema, found), skillTable(found.skills));
    return EXIT.ok;
  });
}

export interface SkillSearchOptions extends ReaderOptions {
  readonly tag?: readonly string[];
  readonly limit?: number;
  readonly similarityMin?: number;
}

export function searchSkills(
  cli: Cli,
  query: string,
  { agent = '', user = '', tag = [], limit = 0, similarityMin }: SkillSearchOptions,
): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const least = similarityMin === undefined ? {} : { minSimilarity: similarityMin };
    const found = await gateway.skills.searchSkills({ query, agent, user, tags: [...tag], maxResults: limit, ...least }, callSettings(cli));
    const hits = found.hits.flatMap(({ skill, similarity }) => (skill === undefined ? [] : [{ skill, similarity }]));
    const lines = skillTable(hits.map(({ skill }) => skill)).split('\n');
    const scores = ['NEAR', ...hits.map(({ similarity }) => similarity.toFixed(2))];
    cli.out.data(
      toJson(SearchSkillsResponseSchema, found, { alwaysEmitImplicit: true }),
      hits.length > 0 ? lines.map((line, at) => `${scores[at]}  ${line}`).join('\n') : '',
    );
    if (hits.length === 0) cli.out.note('nothing found; --similarity-min 0 shows also what is less alike');
    return EXIT.ok;
  });
}

export function listCategories(cli: Cli, parent: string | undefined, { agent = '', user = '' }: ReaderOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.skills.listSkillCategories({ parent: parent ?? '', agent, user }, callSettings(cli));
    const rows = found.categories.map(({ category, skillCount }) => [category, plural(skillCount, 'skill')]);
    cli.out.data(toJson(ListSkillCategoriesResponseSchema, found, { alwaysEmitImplicit: true }), table(rows));
    if (rows.length === 0) cli.out.note(parent === undefined ? 'no categories' : `no categories below ${parent}`);
    return EXIT.ok;
  });
}
