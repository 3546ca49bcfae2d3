import { writeFileSync } from 'node:fs';
import { create, type DescMethod } from '@bufbuild/protobuf';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { status } from '@etude/contracts/grpc-client';
import { hasRole, Role } from '@etude/platform/auth';
import { until } from '@etude/test-support/until';
import { expect, it, onTestFinished } from 'vitest';
import { ruleOf } from '../src/calls/roles.js';
import { gatewayForFile, METHODS, refusal, sha256, writeKeys } from './gateway.harness.js';
import { TEA } from './skill-drafts.js';

const rig = gatewayForFile();

const keyOf = (role: Role) => `key-with-only-${role}`;

/** Whether a call with an empty request is refused to a key that has only this role. */
async function isRefusedTo(role: Role, method: DescMethod, isLetIn: boolean): Promise<boolean> {
  const client = rig.clientWith(method.parent, keyOf(role));
  const call = (client as never as Record<string, (request: unknown, settings: object) => unknown>)[method.localName];
  // A call that is let in may wait. What counts is that it isn't refused for its role.
  const settings = { timeoutMs: isLetIn ? 1_500 : 30_000 };
  try {
    const upload = method.methodKind === 'client_streaming';
    const answer = call?.(upload ? (async function* () {})() : create(method.input), settings);
    if (method.methodKind === 'server_streaming') for await (const _ of answer as AsyncIterable<unknown>) break;
    else await answer;
    return false;
  } catch (error) {
    return (error as { code: status }).code === status.PERMISSION_DENIED;
  }
}

it('lets each call in for the roles of the table, and refuses it for all others', async () => {
  const keys = Role.options.map((role) => ({ sha256: sha256(keyOf(role)), tenant: 'roles', roles: [role] }));
  writeFileSync(rig.keysPath, JSON.stringify({ keys }));
  onTestFinished(() => writeKeys(rig.keysPath));
  const wrong = await Promise.all(
    METHODS.flatMap((method) =>
      Role.options.map(async (role) => {
        const isLetIn = hasRole([role], ruleOf(method).role);
        return (await isRefusedTo(role, method, isLetIn)) === isLetIn ? [`${method.name} as ${role}`] : [];
      }),
    ),
  );
  expect(wrong.flat()).toEqual([]);
});

const REVIEWERS =
  'ApproveSkill ArchiveSkill DeprecateSkill GetSkillReview GetSkillStats ListAudit PromoteSkill PruneSkills RejectSkill RestoreSkill RevokeSource RollbackSkill UndoConsolidation UndoPrune UpdateAgent';
const OPERATORS =
  'GetReembedding ListDeadLetters ListQueues ListTenants ReconcileMemory RedriveDeadLetters StartReembedding StopReembedding';

it.each<[Role, string]>([
  ['reviewer', REVIEWERS],
  ['operator', OPERATORS],
])('needs the role %s for exactly these calls', (role, names) => {
  const found = METHODS.filter((method) => ruleOf(method).role === role).map(({ name }) => name);
  expect(found.toSorted()).toEqual(names.split(' '));
});

const audited = async (key: 'rev' | 'ops' = 'rev', request = {}) =>
  (await rig.client(Queues, key).listAudit(request)).entries.map(({ actor, call, target, outcome }) => [actor, call, target, outcome]);

it('keeps who changed what, and who was refused, for the reviewers of the tenant', async () => {
  const agent = { name: 'agents/solver', proceduralMemorySettings: { approvalMode: 'review' } };
  const updateMask = { paths: ['procedural_memory_settings.approval_mode'] };
  await refusal(rig.client(Agents, 'acme').updateAgent({ agent, updateMask }));
  await rig.client(Agents, 'rev').updateAgent({ agent, updateMask });
  const { fact } = await rig.client(Memory, 'acme').storeFact({ agent: 'solver', text: 'The tide is at five.' });
  await rig.client(Memory, 'acme').deleteMemory({ id: fact?.id ?? '', layer: 'semantic', agent: 'solver' });
  await rig.client(Memory, 'acme').eraseMemory({ whose: { case: 'user', value: 'ada' } });
  expect((await audited()).filter(([actor]) => actor !== 'key file').slice(0, 4)).toEqual([
    ['acme', 'etude.v1.Memory/EraseMemory', 'user ada', 'OK'],
    ['acme', 'etude.v1.Memory/DeleteMemory', fact?.id, 'OK'],
    ['rev', 'etude.v1.Agents/UpdateAgent', 'agents/solver', 'OK'],
    ['acme', 'etude.v1.Agents/UpdateAgent', '', 'PERMISSION_DENIED'],
  ]);
});

it('keeps a change whose caller left before the answer', async () => {
  const agent = { name: 'agents/solver', proceduralMemorySettings: { enabled: true } };
  await rig.client(Agents, 'rev').updateAgent({ agent, updateMask: { paths: ['procedural_memory_settings.enabled'] } });
  const skills = rig.client(Skills, 'rev');
  const leaves = new AbortController();
  const left = refusal(skills.registerSkill({ skill: TEA, wait: true }, { signal: leaves.signal }));
  const isStored = () => skills.getSkill({ name: 'skills/make_tea', agent: 'solver' }).then(Boolean, () => false);
  await until(isStored, { what: 'the skill is stored' });
  leaves.abort();
  await left;
  const kept = ['rev', 'etude.v1.Skills/RegisterSkill', 'make_tea', 'CANCELLED'];
  await until(async () => (await audited())[0]?.[3] === 'CANCELLED', { what: 'the audit log has the call' });
  expect((await audited())[0]).toEqual(kept);
});

it('shows the log of another tenant to operators only, in pages', async () => {
  await rig.client(Memory, 'globex').eraseMemory({ whose: { case: 'user', value: 'bob' } });
  expect(await refusal(rig.client(Queues, 'rev').listAudit({ tenant: 'globex' }))).toMatchObject({ status: status.PERMISSION_DENIED });
  expect(await refusal(rig.client(Queues, 'acme').listAudit({}))).toMatchObject({ status: status.PERMISSION_DENIED });
  expect(await audited('ops', { tenant: 'globex' })).toEqual(
    expect.arrayContaining([['globex', 'etude.v1.Memory/EraseMemory', 'user bob', 'OK']]),
  );
  const first = await rig.client(Queues, 'rev').listAudit({ pageSize: 1, days: 1 });
  const second = await rig.client(Queues, 'rev').listAudit({ pageSize: 1, days: 1, pageToken: first.nextPageToken });
  expect(second.entries[0]?.id).not.toBe(first.entries[0]?.id);
});

const entry = (name: string, more = {}) => ({ sha256: sha256(name), tenant: 'keys', name, ...more });

it('notes keys that are added to the key file or removed from it, and refuses a key that has expired', async () => {
  const past = new Date(Date.now() - 1_000).toISOString();
  writeFileSync(rig.keysPath, JSON.stringify({ keys: [entry('robot'), entry('late', { expires: past })] }));
  expect(await refusal(rig.clientWith(Queues, 'late').listQueues({}))).toMatchObject({ status: status.UNAUTHENTICATED });
  writeKeys(rig.keysPath);
  await until(async () => (await audited('ops', { tenant: 'keys' })).length === 4, { what: 'four changes are noted' });
  const digest = sha256('robot').slice(0, 12);
  expect(await audited('ops', { tenant: 'keys' })).toEqual(
    expect.arrayContaining([
      ['key file', 'keys.added', `robot ${digest}`, 'OK'],
      ['key file', 'keys.removed', `robot ${digest}`, 'OK'],
    ]),
  );
});

it('tells what a key did whose name reads like a field of the log', async () => {
  writeFileSync(rig.keysPath, JSON.stringify({ keys: [entry('outcome', { tenant: 'odd' })] }));
  await rig.clientWith(Memory, 'outcome').eraseMemory({ whose: { case: 'user', value: 'ada' } });
  writeKeys(rig.keysPath);
  expect(await audited('ops', { tenant: 'odd' })).toContainEqual(['outcome', 'etude.v1.Memory/EraseMemory', 'user ada', 'OK']);
});
