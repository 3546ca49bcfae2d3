import { ConsolidatedState, Consolidation, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { until } from '@etude/test-support/until';
import { afterAll, describe, expect, it } from 'vitest';
import { KEYS, startSkillStack, TENANT } from './observed.js';

const SETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.PENDING_REVIEW, SkillStatus.ACTIVE, SkillStatus.REJECTED]);
const { stack, redis, skills } = await startSkillStack();
let worker = stack.consolidator;

type Wish = Readonly<Record<string, string>>;

/** The moments at which the worker is killed, recognised by the wish's record. Moments may be short, so a later moment counts too. */
const MOMENTS = {
  'the wish is accepted': ({ state }) => state !== undefined,
  'the model writes': ({ state, draft, registered }) => state === 'writing' || Boolean(draft ?? registered),
  'the draft is stored': ({ draft, registered }) => Boolean(draft ?? registered),
  'the wish is closed': ({ registered }) => Boolean(registered),
} satisfies Record<string, (wish: Wish) => boolean>;

const clients = { memory: createServiceClient(Memory, stack.address), consolidation: createServiceClient(Consolidation, stack.address) };
afterAll(() => Object.values(clients).forEach((client) => client.close()));

const lineOf = async (run: string, agent: string) => (await redis.hget(KEYS.consolidatedAgents(TENANT, run), agent)) ?? '';
/** The moments at which a run's worker is killed, recognised by the run's stored state. */
const RUN_MOMENTS = {
  'the model is asked': async (run: string) => (await redis.get(KEYS.consolidation(TENANT, run)))?.includes('running') ?? false,
  'the answer is kept': async (run: string) => (await redis.hlen(KEYS.consolidationAnswers(TENANT, run))) > 0,
  // This state lasts some milliseconds. A busy machine may see only the next state.
  'the unit is committed': async (run: string, agent: string) => /"(?:planned|applied)"/.test(await lineOf(run, agent)),
  'the agent is done': async (run: string, agent: string) => (await lineOf(run, agent)).includes('"applied"'),
} satisfies Record<string, (run: string, agent: string) => Promise<boolean>>;

describe('a consolidation worker that is killed with SIGKILL', () => {
  it.each(Object.keys(MOMENTS) as Array<keyof typeof MOMENTS>)(
    'loses no wish and makes one skill when it is killed while %s',
    async (name) => {
      const agent = `killed-when-${name.replaceAll(/\W+/g, '-')}`;
      const asked = await skills.requestSkill({ name: 'count_vowels', agent, description: 'Counts vowels.' });
      const record = KEYS.wantedSkill(TENANT, asked.name.slice('wantedSkills/'.length));
      await until(async () => MOMENTS[name](await redis.hgetall(record)), { what: `that ${name}`, everyMs: 2 });
      await worker.kill();
      worker = await stack.start('consolidation-worker');
      const wanted = await until(
        async () => {
          const now = await skills.getWantedSkill({ name: asked.name });
          return now.state === 'waiting' || now.state === 'writing' ? null : now;
        },
        { what: 'the wish to be over' },
      );
      expect(wanted).toMatchObject({ state: 'registered', registeredSkill: 'skills/count_vowels', asked: 1 });
      const skill = await until(
        async () => {
          const now = await skills.getSkill({ name: 'skills/count_vowels', agent });
          return SETTLED.has(now.status) ? now : null;
        },
        { what: 'the skill to be settled' },
      );
      expect(skill).toMatchObject({ version: 1, origin: 'request', sources: [asked.name] });
      expect(skill.status).not.toBe(SkillStatus.REJECTED);
      expect((await skills.listSkillVersions({ name: 'skills/count_vowels', agent })).skills).toHaveLength(1);
    },
    120_000,
  );

  it.each(Object.keys(RUN_MOMENTS) as Array<keyof typeof RUN_MOMENTS>)(
    'consolidates an agent once when it is killed while %s',
    async (name) => {
      const agent = `run-when-${name.replaceAll(/\W+/g, '-')}`;
      for (const when of ['noon', 'twelve'])
        await clients.memory.storeEpisode({
          agent,
          context: ['Cross the bridge'],
          actions: [`Went at ${when}`],
          reflection: `It opens at ${when}.`,
        });
      const { name: run } = await clients.consolidation.runConsolidation({ agent });
      const id = run.slice('consolidationRuns/'.length);
      await until(async () => RUN_MOMENTS[name](id, agent), { what: `that ${name}`, everyMs: 2 });
      await worker.kill();
      worker = await stack.start('consolidation-worker');
      const ended = await until(
        async () => {
          const now = await clients.consolidation.getConsolidationRun({ name: run });
          return now.state === ConsolidationState.DONE || now.state === ConsolidationState.FAILED ? now : null;
        },
        { what: 'the run to be over' },
      );
      expect(ended).toMatchObject({ state: ConsolidationState.DONE, modelCalls: 1, factsAdded: 1, error: '' });
      expect(ended.agents).toMatchObject([{ agent, state: ConsolidatedState.APPLIED, factsAdded: 1 }]);
      const { records } = await clients.memory.listMemory({ kind: 'fact', agent });
      expect(records).toHaveLength(1);
      expect(await redis.exists(KEYS.consolidationAnswers(TENANT, id))).toBe(0);
      const { agents } = await clients.consolidation.undoConsolidation({ name: run });
      expect(agents).toMatchObject([{ agent, undone: [expect.stringMatching(/^facts\//)], kept: [] }]);
      expect((await clients.memory.listMemory({ kind: 'fact', agent })).records).toEqual([]);
    },
    120_000,
  );
});
