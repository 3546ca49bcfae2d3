import { ConsolidatedState, Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { ConsolidatedAgent } from '@etude/contracts/memory-upkeep';
import type { MemoryOutbox } from '@etude/domain/ports/memory';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { factOf, NEW_YEAR, skillOf } from '@etude/domain/testing/memory-records';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { refusal } from './gateway.harness.js';
import { skillMemoryForFile } from './skill-store.js';

const { rig, memory, store } = skillMemoryForFile();
const reviewer = () => rig.client(Skills, 'rev');
const consolidation = () => rig.client(Consolidation, 'rev');
/** An unused skill. Each skill has its own code, because marks of untrusted code apply to all copies. */
const idle = (name: string, changes: Partial<Skill> = {}) =>
  skillOf({
    name,
    code: `def ${name}(): return '${name.toUpperCase()}'`,
    entryPoint: name,
    status: 'active',
    createdAt: NEW_YEAR,
    updatedAt: NEW_YEAR,
    ...changes,
  });

const statusOf = async (name: string) => (await reviewer().getSkill({ name: `skills/${name}` })).status;

describe('pruning', () => {
  it('plans, archives, and restores on undo', async () => {
    const leaf = await store(idle('leaf'));
    await store(idle('fresh', { dependencies: [dependencyOn(leaf)], createdAt: Date.now() }));
    await store(idle('idle'));
    const policy = { unusedDays: 30, agent: 'coder' };
    const plan = await reviewer().pruneSkills({ ...policy, dryRun: true });
    expect(plan.pruned.map((pruned) => pruned.name)).toEqual(['skills/idle']);
    expect(plan.pruned[0]?.reason).toMatch(/^not used for [0-9]+ days$/);
    expect(plan.kept).toMatchObject([{ name: 'skills/leaf', version: 1, calledBy: ['fresh@1 of "coder"'] }]);
    expect(plan.pruneId).toBe('');
    expect(await statusOf('idle')).toBe(SkillStatus.ACTIVE);

    const done = await reviewer().pruneSkills({ ...policy, requestId: 'night-1' });
    expect(await reviewer().pruneSkills({ ...policy, requestId: 'night-1' })).toEqual({ ...done, kept: [] });
    expect(await statusOf('idle')).toBe(SkillStatus.ARCHIVED);
    expect(await statusOf('leaf')).toBe(SkillStatus.ACTIVE);

    const { skills, left } = await reviewer().undoPrune({ pruneId: done.pruneId });
    expect(left).toEqual([]);
    expect(skills.map((skill) => [skill.name, skill.status])).toEqual([['skills/idle', SkillStatus.ACTIVE]]);
    expect(skills[0]?.history.at(-1)).toMatchObject({ by: 'rev', reason: `undid the pruning ${done.pruneId}` });
    expect((await reviewer().undoPrune({ pruneId: done.pruneId })).skills).toEqual([]);
  });

  it('is refused without criteria, and with wrong ones', async () => {
    expect(await refusal(reviewer().pruneSkills({}))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['unused_days'] });
    expect(await refusal(reviewer().pruneSkills({ failingRateMax: 2 }))).toMatchObject({ fields: ['failing_rate_max'] });
    expect(await refusal(reviewer().undoPrune({ pruneId: 'all' }))).toMatchObject({ fields: ['prune_id'] });
  });
});

describe('undoing a consolidation', () => {
  const outbox: MemoryOutbox = { put: async () => {} };
  const line = { agent: 'coder', state: 'applied', factsAdded: 1, plan: ['fact: one'] } as const;

  it('takes back the facts of an agent, notes it in the run, and changes nothing twice', async () => {
    const runs = new ConsolidationStore(rig.producer);
    const record = await runs.create('acme', { agent: null, days: 7, dryRun: false }, '');
    const name = `consolidationRuns/${record.id}`;
    expect(await refusal(consolidation().undoConsolidation({ name }))).toMatchObject({ status: status.FAILED_PRECONDITION });
    const pages = [{ id: 'p1', facts: [factOf({ text: 'The undone day is Sunday.', source: 'consolidation' })], read: [] }];
    await (await memory().units.stage({ tenant: 'acme', agent: 'coder', run: record.id, at: NEW_YEAR, pages, skills: [] })).commit(outbox);
    for (const agent of ['coder', 'other']) await runs.report(record).putLine(ConsolidatedAgent.parse({ ...line, agent }));
    await runs.put({ ...record, state: 'done', factsAdded: 2, plan: ['a note'] });

    const first = await consolidation().getConsolidationRun({ name, pageSize: 1 });
    expect(first).toMatchObject({ factsAdded: 2, plan: ['a note', 'fact: one'], agents: [{ agent: 'coder', factsAdded: 1 }] });
    const { agents, nextPageToken } = await consolidation().getConsolidationRun({ name, pageSize: 1, pageToken: first.nextPageToken });
    expect([agents.map(({ agent }) => agent), nextPageToken]).toEqual([['other'], '']);

    const undone = await consolidation().undoConsolidation({ name, agent: 'coder', requestId: 'undo-1' });
    expect(undone.agents).toMatchObject([{ agent: 'coder', undone: [expect.stringMatching(/^facts\//)], kept: [] }]);
    expect((await memory().semantic.list({ tenant: 'acme', agent: 'coder' }, 9)).map(({ text }) => text)).not.toContain(
      pages[0]?.facts[0]?.text,
    );
    expect((await consolidation().getConsolidationRun({ name })).agents[0]?.state).toBe(ConsolidatedState.UNDONE);
    expect((await consolidation().undoConsolidation({ name })).agents).toMatchObject([{ undone: [], kept: [] }]);
  });

  it('is refused for an unknown run', async () => {
    const name = 'consolidationRuns/c404';
    expect(await refusal(consolidation().undoConsolidation({ name }))).toMatchObject({ status: status.NOT_FOUND });
  });
});

it('shows only the own tenant', async () => {
  await store(
    idle('theirs', { scope: { tenant: 'globex', agent: 'coder', user: null }, sources: ['documents/shared'], status: 'pending_review' }),
  );
  expect((await reviewer().revokeSource({ source: 'documents/shared' })).skills).toEqual([]);
  expect((await reviewer().getSkillStats({})).agents.map(({ agent }) => agent)).toEqual(['coder']);
});
