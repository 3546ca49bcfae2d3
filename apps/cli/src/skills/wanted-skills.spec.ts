import { create } from '@bufbuild/protobuf';
import { WantedSkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { expect, it } from 'vitest';
import { wantedTable } from './wanted-skills.js';

const waiting = create(WantedSkillSchema, {
  name: 'wantedSkills/w1',
  skill: 'skills/initials',
  agent: 'writer',
  state: 'waiting',
  asked: 1,
  description: 'Initials of a name.',
});
const failed = create(WantedSkillSchema, { ...waiting, name: 'wantedSkills/w2', state: 'failed', reason: 'its tests fail\nsee there' });

it('lists wishes with why they failed, where one did', () => {
  const [head = '', ...rows] = wantedTable([waiting, failed]).split('\n');
  expect(head).toMatch(/ASKED +DESCRIPTION +REASON$/);
  expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
    ['wantedSkills/w1', 'initials', 'writer', 'waiting', '1', 'Initials of a name.', '-'],
    ['wantedSkills/w2', 'initials', 'writer', 'failed', '1', 'Initials of a name.', expect.stringContaining('its tests fail')],
  ]);
  expect(wantedTable([waiting])).not.toContain('REASON');
});
