import { create } from '@bufbuild/protobuf';
import { ListSkillsResponseSchema, type Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { ServiceClient } from '@etude/contracts/grpc-client';
import { expect, it } from 'vitest';
import { SkillResources } from './skill-resources.js';

const skill = (name: string, version = 1, status = SkillStatus.ACTIVE) => ({ name: `skills/${name}`, agent: 'coder', version, status });

/** Three skills on two pages, one of them a second version that waits. Any other call than ListSkills fails. */
function client() {
  const calls: string[] = [];
  const first = { skills: [skill('one'), skill('two', 2, SkillStatus.PENDING_REVIEW)], nextPageToken: 'next' };
  const last = { skills: [skill('three', 3)] };
  const listSkills = async ({ pageToken }: { pageToken?: string }) => {
    calls.push(pageToken ?? '');
    return create(ListSkillsResponseSchema, pageToken === 'next' ? last : first);
  };
  return { calls, skills: { listSkills } as unknown as ServiceClient<typeof Skills> };
}

it('lists all skills with one call for each page, whatever their versions', async () => {
  const { calls, skills } = client();
  const resources = new SkillResources('Etude.Skill', skills);
  const match = { resource: 'list', verb: 'GET', instanceId: 'home', provider: 'Etude.Skill', name: '', bytesMax: 0 } as const;
  const { json } = await resources.answer(match, { query: new URLSearchParams(), body: {} }, {});
  expect(json).toMatchObject([
    { name: 'one', version: 1, object_id: '/instances/home/providers/Etude.Skill/skills/one' },
    { name: 'two', version: 2 },
    { name: 'three', version: 3 },
  ]);
  expect(calls).toEqual(['', 'next']);
});
