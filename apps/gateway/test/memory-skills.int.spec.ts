import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { factOf, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { openMemory } from '@etude/memory/open-memory';
import { OutboxReader } from '@etude/queue/memory-outbox';
import { status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { collect, gatewayForFile, refusal } from './gateway.harness.js';

const rig = gatewayForFile();
const DIGESTS = ['a', 'b', 'c'].map((letter) => letter.repeat(64));
const searchFields = async (request: object) => (await refusal(rig.client(Memory).searchMemory(request))).fields;
const exported = async () => (await collect(rig.client(Memory).exportMemory({}))).flatMap(({ lines }) => lines);
const agent = (name: string) => ({ tenant: 'acme', agent: name, user: null });

/** As the consolidation worker would: another connection to the same file. */
let memory: Awaited<ReturnType<typeof openMemory>>;
beforeAll(async () => {
  memory = await openMemory({ store: { adapter: 'sqlite', path: rig.memoryPath }, embedder: new LexicalEmbedder() });
  await memory.procedural.store(skillOf({ name: 'sum_even', status: 'active', digest: DIGESTS[0] }));
  await memory.procedural.store(skillOf({ name: 'sum_even', scope: agent('other'), status: 'active', digest: DIGESTS[1] }));
  await memory.procedural.store(skillOf({ name: 'waiting', status: 'pending_review', digest: DIGESTS[2] }));
  await memory.episodic.storeTransition(transitionOf());
  await memory.semantic.applyFacts('acme', 'unit-1', [factOf({ text: 'The even numbers of a list sum to an even number.' })]);
});
afterAll(() => memory.close());

describe('skills', () => {
  it('are shown without their tests', async () => {
    const skill = await rig.client(Skills).getSkill({ name: 'skills/waiting' });
    expect(skill).toMatchObject({
      name: 'skills/waiting',
      status: SkillStatus.PENDING_REVIEW,
      digest: DIGESTS[2],
      testCount: 1,
      successRate: 1,
    });
  });

  it('page through every one once, also where two agents have the same name', async () => {
    const seen: string[] = [];
    for (let pageToken = ''; ;) {
      const page = await rig.client(Skills).listSkills({ pageSize: 1, pageToken });
      seen.push(...page.skills.map((skill) => `${skill.name}/${skill.agent}`));
      pageToken = page.nextPageToken;
      if (pageToken === '') break;
    }
    expect(seen.toSorted()).toEqual(['skills/sum_even/coder', 'skills/sum_even/other', 'skills/waiting/coder']);
  });

  it('are filtered by status and agent', async () => {
    const { skills } = await rig.client(Skills).listSkills({ status: SkillStatus.ACTIVE, agent: 'other' });
    expect(skills.map((skill) => skill.digest)).toEqual([DIGESTS[1]]);
  });

  it('are not found by another tenant', async () => {
    expect((await refusal(rig.client(Skills, 'globex').getSkill({ name: 'skills/waiting' }))).status).toBe(status.NOT_FOUND);
    expect((await rig.client(Skills, 'globex').listSkills({})).skills).toEqual([]);
    expect((await refusal(rig.client(Skills, 'globex').approveSkill({ name: 'skills/waiting', digest: DIGESTS[2] }))).status).toBe(
      status.NOT_FOUND,
    );
  });

  it('are approved by the digest that was reviewed, and by no other', async () => {
    const stale = await refusal(rig.client(Skills).approveSkill({ name: 'skills/waiting', digest: DIGESTS[0] }));
    expect(stale).toMatchObject({ status: status.ABORTED, fields: ['digest'] });
    const approved = await rig.client(Skills).approveSkill({ name: 'skills/waiting', digest: DIGESTS[2] });
    expect(approved.status).toBe(SkillStatus.ACTIVE);
    expect((await rig.client(Skills).approveSkill({ name: 'skills/waiting', digest: DIGESTS[2] })).status).toBe(SkillStatus.ACTIVE);
  });

  it.each(['skills/Upper', 'skills/', 'sum_even'])('refuse the name %j', async (name) => {
    expect(await refusal(rig.client(Skills).getSkill({ name }))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['name'] });
  });
});

describe('search', () => {
  it('finds all three layers', async () => {
    const { hits } = await rig.client(Memory).searchMemory({ query: 'sum the even numbers of a list' });
    expect(new Set(hits.map((hit) => hit.layer))).toEqual(new Set(['episodic', 'semantic', 'procedural']));
  });

  it('keeps to the layers that were asked for and explains scores', async () => {
    const { hits } = await rig.client(Memory).searchMemory({ query: 'sum the even numbers', layers: ['semantic'], explain: true });
    expect(hits.map((hit) => hit.layer)).toEqual(['semantic']);
    expect(Object.keys(hits[0]?.explanation ?? {}).length).toBeGreaterThan(0);
  });

  it('finds nothing of another tenant', async () => {
    expect((await rig.client(Memory, 'globex').searchMemory({ query: 'sum the even numbers of a list' })).hits).toEqual([]);
  });

  it('refuses an empty query, an unknown layer and a limit out of range', async () => {
    expect(await searchFields({ query: ' ' })).toEqual(['query']);
    expect(await searchFields({ query: 'x', layers: ['semantic', 'deep'] })).toEqual(['layers[1]']);
    expect(await searchFields({ query: 'x', limit: 101 })).toEqual(['limit']);
  });
});

describe('an import of skills', () => {
  it('runs nothing that was not verified here: they become candidates', async () => {
    const lines = await exported();
    expect(lines.join('\n')).toContain('sum_even');
    const report = await rig.client(Memory, 'globex').importMemory({ lines });
    expect(report.refused).toEqual([]);
    expect((await rig.client(Skills, 'globex').listSkills({})).skills).toEqual([]);
    const outbox = new OutboxReader(rig.producer.redis, rig.producer.keys);
    expect(await outbox.pending('globex')).toBe(3);
    await rig.client(Memory, 'globex').importMemory({ lines });
    expect(await outbox.pending('globex')).toBe(3);
  });

  it('leaves them what they were for an operator', async () => {
    const report = await rig.client(Memory, 'ops').importMemory({ lines: await exported() });
    expect(report).toMatchObject({ added: 0n, refused: [] });
  });
});
