import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { SkillVerify } from '@etude/contracts/queues';
import { episodeOf, factOf, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { beforeAll, describe, expect, it } from 'vitest';
import { collect, type KeyName, refusal } from './gateway.harness.js';
import { skillMemoryForFile } from './skill-store.js';

const { rig, memory, store } = skillMemoryForFile(async () => ({ ETUDE_SKILLS_ENABLED: 'true' }));
const searchFields = async (request: object) => (await refusal(rig.client(Memory).searchMemory(request))).fields;
const exported = async (request: object = {}, key: KeyName = 'rev') =>
  (await collect(rig.client(Memory, key).exportMemory(request))).flatMap(({ lines }) => lines);
const agent = (name: string) => ({ tenant: 'acme', agent: name, user: null });

beforeAll(async () => {
  await store(skillOf({ name: 'sum_even', status: 'active' }));
  await store(skillOf({ name: 'sum_even', scope: agent('other'), status: 'active' }));
  await store(skillOf({ name: 'waiting', status: 'pending_review' }));
  await memory().episodic.storeTransition(transitionOf());
  await memory().semantic.applyFacts('acme', 'unit-1', [factOf({ text: 'The even numbers of a list sum to an even number.' })]);
});

it('search refuses an empty query, an unknown layer and a limit out of range', async () => {
  expect(await searchFields({ query: ' ' })).toEqual(['query']);
  expect(await searchFields({ query: 'x', layers: ['semantic', 'deep'] })).toEqual(['layers[1]']);
  expect(await searchFields({ query: 'x', limit: 101 })).toEqual(['limit']);
});

describe('an import of skills', () => {
  it('for several agents needs the role to register shared skills', async () => {
    const shared = skillOf({ name: 'for_all', scope: { tenant: 'acme', agent: '@tenant', user: null }, status: 'active' });
    await store(shared);
    const lines = (await exported()).filter((line, i) => i === 0 || line.includes('for_all'));
    const { added, refused } = await rig.client(Memory, 'globex').importMemory({ lines });
    expect({ added, reasons: refused.map(({ reason }) => reason) }).toEqual({
      added: 0n,
      reasons: [expect.stringContaining('a key with the role "reviewer"')],
    });
  });

  it('requests verification again if the import before stopped midway', async () => {
    // Code of its own, because marks of untrusted code apply to all copies.
    await store(skillOf({ name: 'plain', code: 'print("plain")', status: 'active', scope: agent('teller') }));
    const lines = (await exported({ agent: 'teller', layers: ['procedural'] })).map((line) => line.replaceAll('teller', 'importer'));
    await rig.client(Memory).importMemory({ lines });
    const jobs = rig.producer.queue(SkillVerify.name);
    const ofImport = async () =>
      (await jobs.getJobs(['waiting', 'prioritized'])).filter(({ data }) => JSON.stringify(data).includes('"importer"'));
    const [lost] = await ofImport();
    await lost?.remove();
    expect(await ofImport()).toEqual([]);
    expect(await rig.client(Memory).importMemory({ lines })).toMatchObject({ unchanged: 1n, refused: [] });
    expect(await ofImport()).toHaveLength(1);
  });
});

/** The tests that a key sees in the skill's memory record. */
const testsShownTo = async (key: KeyName, id: string) => {
  const { fields } = await rig.client(Memory, key).getMemory({ layer: 'procedural', id });
  return {
    ...(fields?.['tests'] === undefined ? {} : { tests: fields['tests'] }),
    heldOut: JSON.stringify(fields).includes('never_shown'),
  };
};

describe('a skill as a record', () => {
  const tests = [{ kind: 'python' as const, setup: '', tests: 'assert total([20, 22]) == 42' }];
  const heldOut = [{ kind: 'python' as const, setup: '', tests: 'assert never_shown' }];

  it('shows tests from tasks to reviewers only, and held-out tests to nobody', async () => {
    await store(skillOf({ name: 'learned', scope: agent('shy'), origin: 'rollout', tests, heldOut }));
    expect(await testsShownTo('acme', 'learned@1')).toEqual({ heldOut: false });
    expect(await testsShownTo('rev', 'learned')).toEqual({ tests, heldOut: false });
  });
});

const get = (request: object, key: KeyName = 'acme') => rig.client(Memory, key).getMemory({ layer: 'procedural', ...request });
const userOf = async (request: object) => (await get(request)).user;
const refusalOf = async (request: object) => (await refusal(get(request))).code;

describe("a user's skill as a record", () => {
  beforeAll(async () => {
    for (const [name, user] of Object.entries({ anns: 'ann', bobs: 'bob' }))
      await store(skillOf({ name, scope: { tenant: 'acme', agent: 'keeper', user }, status: 'active' }));
    for (const user of ['ann', 'bob', null])
      await store(skillOf({ name: 'both', scope: { tenant: 'acme', agent: 'keeper', user }, code: `print('${user}')`, status: 'active' }));
  });

  it('is found only by this user, by name and by version', async () => {
    for (const id of ['anns', 'skills/anns', 'anns@1', 'skills/anns@1']) {
      expect(await get({ id, user: 'ann' })).toMatchObject({ id: 'anns@1', user: 'ann' });
      expect([await refusalOf({ id }), await refusalOf({ id, user: 'bob' })]).toEqual(['NOT_FOUND', 'NOT_FOUND']);
    }
  });

  it('takes precedence over a skill without a user, which other users see', async () => {
    const readers = [{}, { user: 'ann' }, { agent: 'keeper', user: 'bob' }];
    expect(await Promise.all(readers.map((reader) => userOf({ id: 'both@1', ...reader })))).toEqual(['', 'ann', 'bob']);
  });

  it('is an example of a planned archiving for that user and for reviewers only', async () => {
    const plan = { scoreMax: 1, olderThanDays: 0, layers: ['procedural'], agent: 'keeper', dryRun: true };
    const named = async (request: object, key: KeyName = 'acme') =>
      (await rig.client(Memory, key).archiveMemory({ ...plan, ...request })).examples.map(({ id }) => id).toSorted();
    expect(await named({})).toEqual(['both@1']);
    expect(await named({ user: 'ann' })).toEqual(['anns@1', 'both@1']);
    expect(await named({}, 'rev')).toEqual(['anns@1', 'bobs@1', 'both@1', 'both@1', 'both@1']);
  });
});

const hasCases = (shown: unknown) => JSON.stringify(shown).includes('total([]) == 7');

describe('tests from the cases of a task', () => {
  const tests = [{ kind: 'python' as const, setup: '', tests: 'assert total([]) == 7' }];
  beforeAll(() => memory().episodic.storeEpisode(episodeOf({ id: 'solved', scope: agent('solver'), createdAt: Date.now(), tests })));

  it.each(['acme', 'rev'] as const)('are in an episode for reviewers only: %s', async (key) => {
    const client = rig.client(Memory, key);
    const whole = await client.getMemory({ layer: 'episodic', id: 'solved' });
    const { episodes } = await client.listRecentEpisodes({ agent: 'solver' });
    expect([hasCases(whole.fields), hasCases(episodes[0]?.fields)]).toEqual([key === 'rev', key === 'rev']);
  });

  it.each([
    ['an episode has them', { agent: 'solver' }],
    ['a skill has them', { agent: 'coder', layers: ['procedural'] }],
    ['a skill has held-out ones', { agent: 'author' }],
  ])('are in an export for reviewers only: %s', async (_what, request) => {
    const heldOut = [{ kind: 'python' as const, setup: '', tests: 'assert told' }];
    await store(skillOf({ name: 'told', scope: agent('author'), origin: 'person', heldOut }));
    const refused = await refusal(collect(rig.client(Memory).exportMemory(request)));
    expect(refused).toMatchObject({ code: 'PERMISSION_DENIED', message: expect.stringContaining('role "reviewer"') });
    expect(refused.message).toContain('"semantic"');
    expect((await exported(request)).length).toBeGreaterThan(1);
  });

  it('are in no export of layers without tests', async () => {
    const lines = await exported({ layers: ['semantic'] }, 'acme');
    const layers = lines.slice(1).map((line) => (JSON.parse(line) as { layer: string }).layer);
    expect(new Set(layers)).toEqual(new Set(['semantic']));
    expect((await refusal(collect(rig.client(Memory).exportMemory({ layers: ['deep'] })))).fields).toEqual(['layers[0]']);
  });
});
