import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillRequest } from '@etude/contracts/queues';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, type KeyName, refusal } from './gateway.harness.js';

const rig = gatewayForFile({ ETUDE_SKILLS_ENABLED: 'true', ETUDE_SKILLS_WISHES_OPEN_MAX: '3' });
const skills = (key: KeyName = 'acme') => rig.client(Skills, key);
const ask = (name: string, agent: string, user = '') => skills().requestSkill({ name, agent, user });
const waiting = () => rig.producer.queue(SkillRequest.name).getJobCountByTypes('waiting', 'prioritized');
const namesOf = async (key: KeyName, agent: string, user = '') =>
  (await skills(key).listWantedSkills({ agent, user })).wantedSkills.map(({ skill }) => skill).toSorted();

describe('a wish', () => {
  it('is shown to the same readers as the resulting skill', async () => {
    const hers = await ask('of_ann', 'seen', 'ann');
    const nobodys = await ask('of_nobody', 'seen');
    expect(await skills().getWantedSkill({ name: hers.name, user: 'ann' })).toMatchObject({ skill: 'skills/of_ann', user: 'ann' });
    for (const user of ['', 'bob', 'ann'])
      expect(await skills().getWantedSkill({ name: nobodys.name, user })).toMatchObject({ skill: 'skills/of_nobody' });
    for (const user of ['', 'bob'])
      expect((await refusal(skills().getWantedSkill({ name: hers.name, user }))).status).toBe(status.NOT_FOUND);
    expect(await skills('rev').getWantedSkill({ name: hers.name })).toMatchObject({ user: 'ann' });
    expect((await refusal(skills('rev').getWantedSkill({ name: hers.name, user: 'bob' }))).status).toBe(status.NOT_FOUND);
    expect((await refusal(skills('globex').getWantedSkill({ name: hers.name, user: 'ann' }))).status).toBe(status.NOT_FOUND);
    for (const user of ['', 'bob']) expect(await namesOf('acme', 'seen', user)).toEqual(['skills/of_nobody']);
    const both = ['skills/of_ann', 'skills/of_nobody'];
    expect([await namesOf('acme', 'seen', 'ann'), await namesOf('rev', 'seen')]).toEqual([both, both]);
  });

  it('is withdrawn with its job by a caller who may read the wish', async () => {
    const { name } = await ask('not_needed', 'withdrawing', 'ann');
    const before = await waiting();
    const unseen = skills().withdrawWantedSkill({ name, user: 'bob' });
    expect((await refusal(unseen)).status).toBe(status.NOT_FOUND);
    expect(await skills().withdrawWantedSkill({ name, user: 'ann', reason: 'found one' })).toMatchObject({
      state: 'withdrawn',
      reason: 'found one',
    });
    expect(await waiting()).toBe(before - 1);
    expect(await skills().withdrawWantedSkill({ name, user: 'ann', reason: 'again' })).toMatchObject({ reason: 'found one' });
    expect(await ask('not_needed', 'withdrawing', 'ann')).toMatchObject({ name, state: 'waiting', reason: '' });
    expect(await waiting()).toBe(before);
  });

  it('is not created by UseSkill if the agent has the maximum of open wishes', async () => {
    const use = (name: string) => skills().useSkill({ name: `skills/${name}`, agent: 'greedy' });
    const first = await use('first_missing');
    expect(first).toMatchObject({ success: false, error: 'Skill not found', skillRequestSubmitted: true });
    await use('another_absent');
    await use('third_lacking');
    const full = await use('fourth_wanting');
    expect(full).toMatchObject({ success: false, skillRequestSubmitted: false, wantedSkill: '' });
    expect(full.error).toMatch(/^Skill not found\. Agent "greedy" has 3 requested skills that are not written yet/);
    expect((await refusal(ask('fourth_wanting', 'greedy'))).status).toBe(status.FAILED_PRECONDITION);
    expect(await namesOf('acme', 'greedy')).toEqual(['skills/another_absent', 'skills/first_missing', 'skills/third_lacking']);
    await skills().withdrawWantedSkill({ name: first.wantedSkill });
    expect(await use('fourth_wanting')).toMatchObject({ skillRequestSubmitted: true });
  });
});
