import { type Skill as SkillMessage, Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { callOf } from './skill-drafts.js';
import { skillsForFile } from './skill-workers.js';

const rig = skillsForFile();
const skills = (key: KeyName = 'rev') => rig.client(Skills, key);

function register(name: string, code: string, { key = 'acme', agent = 'coder' }: { key?: KeyName; agent?: string } = {}) {
  const draft = { name, agent, description: `Does what ${name} does.`, code, tests: [callOf([1], 2), callOf([7], 8)] };
  return skills(key).registerSkill({ skill: draft, wait: true });
}

const step = (name: string, body: string) => `def ${name}(n: int) -> int:\n    return ${body}\n`;
const shown = (skill: SkillMessage | undefined) =>
  JSON.stringify(skill, (_key, one: unknown) => (typeof one === 'bigint' ? String(one) : one));

describe('a promoted skill', () => {
  it('is verified for its new readers, waits for review, and hides private skills that called the original', async () => {
    await register('step', step('step', 'n + 1'));
    await register('secret_project', `from skills import step\n\ndef secret_project(n: int) -> int:\n    return step(n)\n`);
    const own = await register('step', step('step', '1 + n'));
    expect(shown(own)).toContain('secret_project');
    const asked = { name: 'skills/step', agent: 'coder', scope: SkillScope.TENANT };
    const copy = await skills().promoteSkill(asked);
    expect(copy).toMatchObject({ agent: '@tenant', scope: SkillScope.TENANT, status: SkillStatus.PENDING_REVIEW, digest: own.digest });
    expect(copy.statusReason).toContain('it was promoted');
    expect(copy.history[0]).toMatchObject({ by: 'rev', reason: 'shared by rev' });
    expect(shown(copy)).not.toContain('secret_project');
    expect(shown(copy)).not.toContain('coder');
    expect(await skills().promoteSkill(asked)).toMatchObject({ version: copy.version, status: SkillStatus.PENDING_REVIEW });
    await skills().approveSkill({ name: 'skills/step', agent: '@tenant', digest: copy.digest });
    expect(await skills('acme').getSkill({ name: 'skills/step', agent: 'elsewhere' })).toMatchObject({ scope: SkillScope.TENANT });
  });

  it('is shared with every tenant by operators only, and only operators see its tests', async () => {
    await register('jump', step('jump', 'n + 1'));
    const wide = { name: 'skills/jump', agent: 'coder', scope: SkillScope.GLOBAL };
    expect((await refusal(skills().promoteSkill(wide))).status).toBe(status.PERMISSION_DENIED);
    const { digest } = await skills('ops').promoteSkill(wide);
    const named = { name: 'skills/jump', agent: '@global' };
    expect((await refusal(skills().approveSkill({ ...named, digest }))).status).toBe(status.PERMISSION_DENIED);
    await skills('ops').approveSkill({ ...named, digest });
    expect(await skills('globex').getSkill({ name: 'skills/jump', agent: 'x' })).toMatchObject({ scope: SkillScope.GLOBAL });
    const code = 'from skills import jump\n\ndef globex_project(n: int) -> int:\n    return jump(n)\n';
    expect(await register('globex_project', code, { key: 'globex' })).toMatchObject({ status: SkillStatus.ACTIVE });
    const review = await skills().getSkillReview(named);
    expect(review).toMatchObject({ tests: [], dependents: [] });
    expect((await skills('ops').getSkillReview(named)).tests).toHaveLength(2);
    expect(await refusal(skills().promoteSkill({ ...named, agent: 'coder', scope: SkillScope.AGENT }))).toMatchObject({
      fields: ['scope'],
    });
  });
});
