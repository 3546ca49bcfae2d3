import { SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { KEYS, startSkillStack, TENANT } from './observed.js';

const SETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.PENDING_REVIEW, SkillStatus.ACTIVE, SkillStatus.REJECTED]);
const { stack, redis, skills } = await startSkillStack();
let worker = stack.consolidator;

interface Moment {
  readonly field: 'state' | 'draft' | 'registered';
  readonly is: (value: string | null) => boolean;
}

/** The moments at which the worker is killed, recognised by a field of the wish's record. */
const MOMENTS = {
  'the wish is accepted': { field: 'state', is: (state) => state !== null },
  'the model writes': { field: 'state', is: (state) => state === 'writing' },
  'the draft is stored': { field: 'draft', is: (draft) => draft !== null },
  'the wish is closed': { field: 'registered', is: (registered) => registered !== null && registered !== '' },
} satisfies Record<string, Moment>;

describe('a consolidation worker that is killed with SIGKILL', () => {
  it.each(Object.keys(MOMENTS) as Array<keyof typeof MOMENTS>)(
    'loses no wish and makes one skill when it is killed while %s',
    async (name) => {
      const { field, is } = MOMENTS[name];
      const agent = `killed-when-${name.replaceAll(/\W+/g, '-')}`;
      const asked = await skills.requestSkill({ name: 'count_vowels', agent, description: 'Counts vowels.' });
      const record = KEYS.wantedSkill(TENANT, asked.name.slice('wantedSkills/'.length));
      await until(async () => is(await redis.hget(record, field)), { what: `that ${name}`, everyMs: 2 });
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
});
