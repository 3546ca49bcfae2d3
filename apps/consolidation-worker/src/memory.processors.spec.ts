import type { MemoryWrite } from '@etude/contracts/memory';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { FakeProceduralMemory } from '@etude/domain/testing/fake-procedural-memory';
import { DAY_MS, provenSkill, Shelf } from '@etude/domain/testing/hygiene-fixture';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from '@etude/domain/testing/memory-records';
import type { AppliedWrites } from '@etude/memory/memory';
import { expect, it } from 'vitest';
import { type MemoryUpkeepDeps, memoryUpkeepProcessor, type MemoryWriteDeps, memoryWriteProcessor } from './memory.processors.js';

const never = new AbortController().signal;
const CONTEXT = { jobId: 'j', attempt: 1, isLastAttempt: false, signal: never, draining: never };

/** Learned skills in an outbox, for an agent with a limit of one. */
function learned(...names: readonly string[]) {
  const procedural = new FakeProceduralMemory();
  const waiting = new Map<string, MemoryWrite>(names.map((name) => [name, { kind: 'skill' as const, skill: skillOf({ name }) }]));
  const warnings: object[] = [];
  const asked: string[] = [];
  const apply: AppliedWrites['apply'] = async (_tenant, id, write, options) => {
    if (write.kind === 'skill_use') await procedural.applyUse(id, write);
    return { applied: true, skill: write.kind === 'skill' ? await procedural.store(write.skill, options) : null };
  };
  const settings = ProceduralMemorySettings.parse({ enabled: true, maxSkills: 1 });
  const deps = {
    memory: { appliedWrites: { apply } },
    outbox: {
      load: async (_tenant: string, id: string) => waiting.get(id) ?? null,
      remove: async (_: string, id: string) => waiting.delete(id),
    },
    producer: { add: async (_queue: unknown, { name }: { name: string }) => void asked.push(name) },
    schedules: { ensure: async () => undefined },
    settings: {
      get: async (_tenant: string, agent: string) => ({
        agent,
        settings,
        strategy: 'attempts' as const,
        mcpServers: [],
        isSet: true,
        updatedAt: 0,
        etag: '',
      }),
    },
    logger: { info: () => undefined, warn: (details: object) => void warnings.push(details), error: () => undefined },
  } as unknown as MemoryWriteDeps;
  const process = memoryWriteProcessor(deps);
  const run = (writeId: string) => process({ v: 1, tenant: 'acme', writeId }, CONTEXT);
  return { run, procedural, waiting, warnings, asked };
}

it('drops a learned skill beyond the limit of its agent and logs a warning', async () => {
  const { run, procedural, waiting, warnings, asked } = learned('one', 'two');
  expect(await Promise.all([run('one'), run('two')])).toEqual([{ applied: true }, { applied: false }]);
  expect(await procedural.countNames(SCOPE)).toBe(1);
  expect([...waiting.keys()]).toEqual([]);
  expect(asked).toEqual(['one']);
  expect(warnings).toMatchObject([{ agent: 'coder', skill: 'two' }]);
});

it('drops the use of a skill that was deleted', async () => {
  const { run, waiting } = learned();
  waiting.set('use', skillUseOf({ name: 'gone' }));
  expect(await run('use')).toEqual({ applied: false });
  expect([...waiting.keys()]).toEqual([]);
});

it('prunes by the limits of the schedule, once per firing', async () => {
  const shelf = new Shelf(provenSkill('idle'));
  const process = memoryUpkeepProcessor({ memory: shelf, clock: { now: () => NEW_YEAR + 100 * DAY_MS } } as unknown as MemoryUpkeepDeps);
  const limits = { unusedDays: 90, failingRateMax: 0, failingUsesMin: 5, supersededDays: 0 };
  for (let times = 0; times < 2; times += 1)
    expect(await process({ v: 1, work: 'prune', tenant: 'acme', id: 'nightly-77', ...limits }, CONTEXT)).toEqual({ archived: 1 });
  expect(shelf.moves).toMatchObject([{ key: { name: 'idle' }, by: 'pruning' }]);
});

it('archives what is worth little and what does harm in one nightly work', async () => {
  const upkeep = { archive: async () => ({ archived: 2 }), archiveHarmful: async ({ tenant }: { tenant: string }) => tenant.length };
  const process = memoryUpkeepProcessor({ memory: { upkeep } } as unknown as MemoryUpkeepDeps);
  expect(await process({ v: 1, work: 'archive', tenant: 'acme', id: 'a1', scoreMax: 0.2, olderThanDays: 30 }, CONTEXT)).toEqual({
    archived: 6,
  });
});
