import { Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { skillOf } from '@etude/domain/testing/memory-records';
import { status } from '@grpc/grpc-js';
import { beforeAll, describe, expect, it } from 'vitest';
import { type KeyName, pagesOf, refusal } from './gateway.harness.js';
import { skillMemoryForFile } from './skill-store.js';

const { rig, store: keep } = skillMemoryForFile();
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const names = async (request: object, key: KeyName = 'acme') =>
  (await skills(key).listSkills(request)).skills.map(({ name, agent }) => `${name.slice('skills/'.length)}/${agent}`);

const told = (answer: object) => JSON.stringify(answer, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

let counter = 0;
async function store(changes: Partial<Skill>): Promise<Skill> {
  counter += 1;
  return keep(skillOf({ code: `def total(xs): return sum(xs) + ${counter}`, status: 'active', ...changes }));
}
const owned = (agent: string, user: string | null = null, tenant = 'acme') => ({ scope: { tenant, agent, user } });

beforeAll(async () => {
  await store({ name: 'shared_name', ...owned('coder'), tags: ['lists'], category: 'math.sums' });
  await store({ name: 'shared_name', ...owned('@tenant'), category: 'math.sums' });
  await store({ name: 'shared_name', ...owned('other'), category: 'math.sums' });
  await store({
    name: 'for_all',
    ...owned('@tenant', null, '@global'),
    category: 'text',
    heldOut: [{ kind: 'python', setup: '', tests: 'assert hidden' }],
  });
  await store({ name: 'of_ann', ...owned('coder', 'ann'), category: 'text.csv' });
  await store({ name: 'of_anns_agents', ...owned('@user', 'ann') });
  await store({ name: 'versions', ...owned('coder'), description: 'Sums the even numbers.' });
  await store({ name: 'versions', ...owned('coder'), description: 'Sums all numbers.', tests: [], status: 'pending_review' });
  await store({ name: 'archived_one', ...owned('coder'), status: 'archived' });
});

describe('a list of skills', () => {
  it('has the skills of an agent and shared skills, and prefers the narrowest owner of a name', async () => {
    expect(await names({ agent: 'coder' })).toEqual(['for_all/@global', 'shared_name/coder', 'versions/coder']);
    expect(await names({ agent: 'nobodys' })).toEqual(['for_all/@global', 'shared_name/@tenant']);
  });

  it('shows the skills of a user to that user only', async () => {
    expect(await names({ agent: 'coder', user: 'ann' })).toEqual([
      'for_all/@global',
      'of_ann/coder',
      'of_anns_agents/@user',
      'shared_name/coder',
      'versions/coder',
    ]);
    expect(await names({ agent: 'other', user: 'bob' })).not.toContain('of_anns_agents/@user');
    expect(await names({})).not.toContain('of_ann/coder');
    expect(await names({}, 'rev')).toContain('of_ann/coder');
  });

  it('shows the skill of each user separately if a reviewer names no user', async () => {
    for (const user of ['ann', 'bob', 'cid']) await store({ name: 'own_ways', ...owned('@user', user) });
    const listed = async (request: object) => {
      const page = await skills('rev').listSkills(request);
      return { ...page, users: page.skills.filter(({ name }) => name === 'skills/own_ways').map(({ user }) => user) };
    };
    for (const agent of ['', '@user', 'coder']) expect((await listed({ agent })).users).toEqual(['ann', 'bob', 'cid']);
    const paged = await pagesOf((pageToken) => listed({ agent: '@user', pageSize: 1, pageToken }));
    expect(paged.flatMap(({ users }) => users)).toEqual(['ann', 'bob', 'cid']);
    const named = { name: 'skills/own_ways', agent: '@user' };
    expect(await refusal(skills('rev').getSkill(named))).toMatchObject({
      status: status.FAILED_PRECONDITION,
      message: expect.stringContaining('ann, bob, cid. Set the field user') as string,
    });
    expect((await refusal(skills('rev').listSkillVersions(named))).status).toBe(status.FAILED_PRECONDITION);
    expect((await refusal(skills('rev').getSkill({ ...named, version: 1 }))).status).toBe(status.FAILED_PRECONDITION);
    expect(await skills('rev').getSkill({ ...named, user: 'bob', version: 1 })).toMatchObject({ user: 'bob' });
    expect((await skills('rev').listSkillVersions({ ...named, user: 'cid' })).skills).toMatchObject([{ version: 1, user: 'cid' }]);
    expect((await skills('rev').listSkills({ agent: '@user', user: 'bob' })).skills).toMatchObject([{ user: 'bob' }]);
  });

  it('has the skills of all agents, page by page, if no agent is named', async () => {
    const pages = await pagesOf((pageToken) => skills().listSkills({ pageSize: 1, pageToken }));
    const seen = pages.flatMap((page) => page.skills.map(({ name, agent }) => `${name.slice('skills/'.length)}/${agent}`));
    expect(seen).toEqual(['for_all/@global', 'shared_name/@tenant', 'shared_name/coder', 'shared_name/other', 'versions/coder']);
  });

  it('is narrowed by status, category and tags', async () => {
    expect(await names({ status: SkillStatus.PENDING_REVIEW })).toEqual(['versions/coder']);
    expect(await names({ status: SkillStatus.ARCHIVED })).toEqual(['archived_one/coder']);
    expect(await names({ agent: 'coder', user: 'ann', category: 'text' })).toEqual(['for_all/@global', 'of_ann/coder']);
    expect(await names({ agent: 'coder', tags: ['lists'] })).toEqual(['shared_name/coder']);
    expect(await names({ agent: 'coder', tags: ['lists', 'more'] })).toEqual([]);
  });

  it('shows another tenant only the skills of all tenants', async () => {
    expect(await names({}, 'globex')).toEqual(['for_all/@global']);
  });

  it.each([
    ['a wrong status', { status: 99 }, 'status'],
    ['a wrong category', { category: 'Text' }, 'category'],
    ['the owner @user without a user', { agent: '@user' }, 'user'],
    ['a wrong tag', { tags: [''] }, 'tags[0]'],
  ])('refuses %s', async (_what, request, field) => {
    expect(await refusal(skills().listSkills(request))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
  });
});

describe('a skill', () => {
  it('comes from the narrowest owner, and is shown with its proof and history', async () => {
    const skill = await skills().getSkill({ name: 'skills/shared_name', agent: 'coder' });
    expect(skill).toMatchObject({
      agent: 'coder',
      scope: SkillScope.AGENT,
      status: SkillStatus.ACTIVE,
      category: 'math.sums',
      testCount: 1,
    });
    expect(skill.proof).toMatchObject({ digest: skill.digest, mutantsNoticed: 4 });
    expect(skill.history.map(({ to }) => to)).toEqual([SkillStatus.CANDIDATE, SkillStatus.VERIFIED, SkillStatus.ACTIVE]);
    expect(await skills().getSkill({ name: 'skills/shared_name', agent: '@tenant' })).toMatchObject({ scope: SkillScope.TENANT });
    const { $typeName: _type, ...everybodys } = await skills('globex').getSkill({ name: 'skills/for_all', agent: 'x' });
    expect(everybodys).toMatchObject({ scope: SkillScope.GLOBAL, agent: '@global', testCount: 1 });
    expect(told(everybodys)).not.toMatch(/assert|hidden/);
  });

  it('shows the changes between versions, with the number of tests only', async () => {
    const asked = { name: 'skills/versions', agent: 'coder' };
    const diff = await skills().diffSkill(asked);
    expect(diff).toMatchObject({ fromVersion: 1, toVersion: 2 });
    expect(diff.codeDiff).toMatch(/^-def total[^]*^\+def total/m);
    expect(diff.fieldsDiff).toMatch(/-.*Sums the even numbers[^]*\+.*Sums all numbers/);
    expect(diff.fieldsDiff).toMatch(/-.*"test_count": 1[^]*\+.*"test_count": 0/);
    expect(await skills().diffSkill({ ...asked, fromVersion: 2, toVersion: 2 })).toMatchObject({ codeDiff: '', fieldsDiff: '' });
    expect((await skills().diffSkill({ ...asked, toVersion: 1 })).codeDiff).toContain('/dev/null');
    expect((await refusal(skills().diffSkill({ ...asked, fromVersion: 7 }))).status).toBe(status.NOT_FOUND);
  });

  it.each([
    ['another tenant', 'globex', { name: 'skills/versions' }],
    ['another agent', 'acme', { name: 'skills/versions', agent: 'other' }],
    ['another user', 'acme', { name: 'skills/of_ann', agent: 'coder', user: 'bob' }],
    ['a version that is not there', 'acme', { name: 'skills/versions', agent: 'coder', version: 9 }],
  ] as const)('is not found for %s', async (_who, key, request) => {
    expect((await refusal(skills(key).getSkill(request))).status).toBe(status.NOT_FOUND);
    if ('version' in request) return;
    expect((await refusal(skills(key).listSkillVersions(request))).status).toBe(status.NOT_FOUND);
    expect((await refusal(skills(key).diffSkill(request))).status).toBe(status.NOT_FOUND);
  });
});

it('narrows a search by tags, similarity and number, also without an agent', async () => {
  const query = 'Sums the even numbers of a list.';
  expect((await skills().searchSkills({ query, agent: 'coder', tags: ['lists'], minSimilarity: 0 })).hits).toHaveLength(1);
  const { hits } = await skills().searchSkills({ query, minSimilarity: 0, maxResults: 2 });
  expect(hits.map(({ skill }) => skill?.status)).toEqual([SkillStatus.ACTIVE, SkillStatus.ACTIVE]);
  expect((await skills().searchSkills({ query: 'weather in Lisbon tomorrow' })).hits).toEqual([]);
});

it('counts search hits as offers to the agent', async () => {
  const before = (await skills().getSkill({ name: 'skills/shared_name', agent: 'other' })).offeredCount;
  await skills().searchSkills({ query: 'Sums the even numbers of a list.', agent: 'other', minSimilarity: 0 });
  await expect.poll(async () => (await skills().getSkill({ name: 'skills/shared_name', agent: 'other' })).offeredCount).toBe(before + 1n);
});

it('categories are counted with the skills of their subcategories', async () => {
  const top = await skills().listSkillCategories({ agent: 'coder', user: 'ann' });
  expect(top.categories).toMatchObject([
    { category: 'math', skillCount: 1 },
    { category: 'text', skillCount: 2 },
  ]);
  const below = await skills().listSkillCategories({ agent: 'coder', user: 'ann', parent: 'text' });
  expect(below.categories).toMatchObject([{ category: 'text.csv', skillCount: 1 }]);
});
