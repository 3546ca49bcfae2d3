import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { skillOf } from '@etude/domain/testing/memory-records';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { type KeyName, refusal } from './gateway.harness.js';
import { newSigner, skillMemoryForFile, storeSkill } from './skill-store.js';

const { rig, memory, store: keep } = skillMemoryForFile();
const skills = (key: KeyName = 'rev') => rig.client(Skills, key);
const agent = 'coder';

let counter = 0;
/** Stores a version whose content no other version has. */
async function store(name: string, changes: Partial<Skill> = {}): Promise<Skill> {
  counter += 1;
  return keep(skillOf({ name, code: `def total(xs): return sum(xs) + ${counter}`, ...changes }));
}
const named = (name: string, more: object = {}) => ({ name: `skills/${name}`, agent, ...more });
const stateOf = async (name: string, version: number) => (await skills().getSkill(named(name, { version }))).status;

it('a review shows code, diff, tests, similar skills and callers, and only counts held-out tests', async () => {
  const first = await store('reviewed', { status: 'active' });
  await store('alike', { status: 'active', description: 'Sums the even numbers of a list' });
  const waiting = await store('reviewed', {
    status: 'pending_review',
    heldOut: [{ kind: 'python', setup: '', tests: 'assert hidden' }],
  });
  await store('caller', { status: 'active', dependencies: [dependencyOn(first)] });
  const review = await skills().getSkillReview(named('reviewed'));
  expect(review.skill).toMatchObject({ version: 2, digest: waiting.digest, status: SkillStatus.PENDING_REVIEW });
  expect(review.diff).toMatchObject({ fromVersion: 1, toVersion: 2 });
  expect(review.diff?.codeDiff).toContain('+def total');
  expect(review.tests.map((test) => JSON.parse(test) as unknown)).toMatchObject([{ kind: 'call', expected: 2 }]);
  expect(review.heldOutCount).toBe(1);
  expect(JSON.stringify(review.tests) + review.diff?.fieldsDiff).not.toContain('hidden');
  expect(review.similar.map(({ skill }) => skill?.name)).toContain('skills/alike');
  expect(review.dependents).toMatchObject([{ name: 'skills/caller', version: 1 }]);
});

describe('an approval', () => {
  it('is refused for another digest than the reviewed one', async () => {
    const { digest } = await store('approved', { status: 'pending_review' });
    const stale = await refusal(skills().approveSkill(named('approved', { digest: 'a'.repeat(64) })));
    expect(stale).toMatchObject({ status: status.ABORTED });
    const approved = await skills().approveSkill(named('approved', { digest }));
    expect(approved).toMatchObject({ status: SkillStatus.ACTIVE });
    expect(approved.history.at(-1)).toMatchObject({ by: 'rev', to: SkillStatus.ACTIVE });
  });

  it('is refused if an unknown key signed the proof', async () => {
    const stranger = mkdtempSync(join(rig.dir, 'stranger-'));
    const forged = skillOf({ name: 'forged', status: 'pending_review', code: 'def forged(xs): return 0' });
    const { digest } = await storeSkill(memory().procedural, forged, newSigner(stranger));
    const refused = await refusal(skills().approveSkill(named('forged', { digest })));
    expect(refused).toMatchObject({ status: status.FAILED_PRECONDITION, message: expect.stringContaining('verify it again') as string });
    expect(await stateOf('forged', 1)).toBe(SkillStatus.PENDING_REVIEW);
  });

  it('deprecates a merged skill in favour of the approved one', async () => {
    await store('merged_away', { status: 'active' });
    const { digest } = await store('merged', { status: 'pending_review' });
    await skills().approveSkill(named('merged', { digest, merge: 'skills/merged_away' }));
    const away = await skills().getSkill(named('merged_away'));
    expect(away).toMatchObject({ status: SkillStatus.DEPRECATED, replacedBy: 'skills/merged' });
  });
});

describe('a decision of a reviewer', () => {
  it('rejects only with a reason', async () => {
    await store('rejected', { status: 'pending_review' });
    expect(await refusal(skills().rejectSkill(named('rejected')))).toMatchObject({ fields: ['reason'] });
    const rejected = await skills().rejectSkill(named('rejected', { reason: 'it sums nothing' }));
    expect(rejected).toMatchObject({ status: SkillStatus.REJECTED, statusReason: 'it sums nothing' });
  });

  it('archives all versions or one, and restores them', async () => {
    await store('archived', { status: 'active' });
    await store('archived', { status: 'pending_review' });
    await skills().archiveSkill(named('archived', { reason: 'unused' }));
    expect([await stateOf('archived', 1), await stateOf('archived', 2)]).toEqual([SkillStatus.ARCHIVED, SkillStatus.ARCHIVED]);
    expect((await skills().listSkills({ agent })).skills.map(({ name }) => name)).not.toContain('skills/archived');
    const restored = await skills().restoreSkill(named('archived', { version: 1 }));
    expect(restored).toMatchObject({ status: SkillStatus.ACTIVE, version: 1 });
    await skills().archiveSkill(named('archived'));
    expect(await skills().restoreSkill(named('archived'))).toMatchObject({ status: SkillStatus.ACTIVE, version: 1 });
  });

  it('finds the skill of a user only if the request names that user', async () => {
    await store('of_ann', { status: 'active', scope: { tenant: 'acme', agent, user: 'ann' } });
    expect((await refusal(skills().deprecateSkill(named('of_ann', { user: 'bob' })))).status).toBe(status.NOT_FOUND);
    expect(await skills().deprecateSkill(named('of_ann', { user: 'ann' }))).toMatchObject({ user: 'ann' });
  });
});

it('a request id makes a repeated decision return the version of the first, whatever changed since', async () => {
  const { digest } = await store('repeated', { status: 'pending_review' });
  const approval = named('repeated', { digest, requestId: 'approve-1' });
  await skills().approveSkill(approval);
  await skills().deprecateSkill(named('repeated', { requestId: 'deprecate-1' }));
  expect(await skills().approveSkill(approval)).toMatchObject({ version: 1, status: SkillStatus.DEPRECATED });
  // Any key of the tenant may repeat the request.
  expect(await skills('ops').deprecateSkill(named('repeated', { requestId: 'deprecate-1' }))).toMatchObject({ version: 1 });
  const other = await refusal(skills().deprecateSkill(named('archived', { requestId: 'deprecate-1' })));
  expect(other).toMatchObject({ status: status.ALREADY_EXISTS, code: 'ALREADY_EXISTS' });
});
