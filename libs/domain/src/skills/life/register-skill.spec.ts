import type { Skill, SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { storeAt } from '../../../test/skill-lives.js';
import { hasHiddenTests } from '../content-digest.js';
import { registerSkill, promoteSkill } from './register-skill.js';
import { keyOf } from './skill-life.js';

const ON = { enabled: true, maxSkills: 0 };
const other = (letter: string, changes: Partial<Skill> = {}) => skillOf({ code: `print('${letter}')`, ...changes });
const heldOut = (expected: number): SkillTest => ({ kind: 'call', args: [[]], kwargs: {}, expected, tolerance: 0 });

const made = () => ({ procedural: new FakeProceduralMemory(), settings: ON });
const decision = (at: number) => ({ by: 'ann', reason: 'useful', at: NEW_YEAR + at });

describe('registerSkill', () => {
  it('keeps tests from tasks hidden in later versions', async () => {
    const deps = made();
    await registerSkill(skillOf({ origin: 'rollout' }), {}, deps);
    const edited = await registerSkill(other('b', { origin: 'person', description: 'Other words.' }), { baseVersion: 1 }, deps);
    const again = await registerSkill(other('c', { origin: 'person' }), { baseVersion: 2 }, deps);
    const anew = await registerSkill(other('d', { origin: 'person', tests: [heldOut(4)] }), { baseVersion: 3 }, deps);
    expect([edited, again, anew].map(hasHiddenTests)).toEqual([true, true, false]);
    expect(edited.origin).toBe('person');
  });

  it('refuses a version of another kind than the one in use', async () => {
    const deps = made();
    const { procedural } = deps;
    await storeAt(procedural, skillOf({ status: 'active' }));
    for (const kind of ['snippet', 'procedure'] as const)
      await expect(registerSkill(other('b', { kind }), { baseVersion: 1 }, deps)).rejects.toMatchObject({
        code: 'FAILED_PRECONDITION',
        message: expect.stringContaining('but the active version 1 is a function') as string,
      });
    expect(await procedural.versions(SCOPE, skillOf().name)).toHaveLength(1);
    expect(await registerSkill(other('b', { kind: 'snippet', name: 'other_one' }), {}, deps)).toMatchObject({ kind: 'snippet' });
  });

  it.each([
    ['enabled', { enabled: false, maxSkills: 0 }],
    ['max_skills', { enabled: true, maxSkills: 1 }],
  ])('refuses by the setting %s', async (field, settings) => {
    const deps = { procedural: new FakeProceduralMemory().keep(skillOf({ name: 'one' })), settings };
    await expect(registerSkill(skillOf({ name: 'two' }), {}, deps)).rejects.toMatchObject({ details: { field } });
  });

  it('carries held-out tests over to later versions', async () => {
    const deps = made();
    await registerSkill(skillOf({ heldOut: [heldOut(1)] }), {}, deps);
    const second = await registerSkill(other('b', { heldOut: [heldOut(2), heldOut(1)] }), {}, deps);
    expect(second.heldOut).toEqual([heldOut(1), heldOut(2)]);
  });
});

it('refuses to register content of a retired version', async () => {
  const deps = made();
  const { procedural } = deps;
  const first = await storeAt(procedural, skillOf({ status: 'deprecated' }));
  await storeAt(procedural, skillOf({ code: "print('b')", status: 'active' }));
  await expect(registerSkill(skillOf(), { baseVersion: 1 }, deps)).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
    message: expect.stringContaining('it is deprecated, and version 2 is active. Nothing was stored'),
    details: { metadata: { version: '1', status: 'deprecated' } },
  });
  await procedural.move([{ key: keyOf(first), to: 'archived', by: 'ann', reason: 'old', at: NEW_YEAR + 9 }]);
  await expect(registerSkill(skillOf(), {}, deps)).rejects.toMatchObject({ message: expect.stringContaining('it is archived') });
  expect(await procedural.versions(SCOPE, 'sum_even')).toHaveLength(2);
});

describe('promoteSkill', () => {
  const shared = { ...SCOPE, agent: '@tenant' };

  it('stores a marked candidate without counts, cues and proof', async () => {
    const procedural = new FakeProceduralMemory();
    const own = await storeAt(procedural, skillOf({ status: 'active', scope: { ...SCOPE, user: 'ann' } }));
    const copy = await promoteSkill(procedural, own, { ...decision(1), scope: 'tenant' });
    expect(copy).toMatchObject({
      status: 'candidate',
      scope: shared,
      evidence: [],
      cues: [],
      fingerprints: [],
      executionCount: 0,
      untrusted: ['it was promoted, and approved for fewer readers only'],
    });
    expect(copy).not.toHaveProperty('proof');
    expect(copy.history).toMatchObject([{ by: 'ann', to: 'candidate', reason: 'shared by ann: useful' }]);
    expect(await promoteSkill(procedural, own, { ...decision(2), scope: 'tenant' })).toEqual(copy);
    expect(await procedural.versions(shared, 'sum_even')).toHaveLength(1);
  });

  it('requires more readers and a proof', async () => {
    const procedural = new FakeProceduralMemory();
    const own = await storeAt(procedural, skillOf({ status: 'active' }));
    const wide = await storeAt(procedural, skillOf({ name: 'wide', status: 'active', scope: shared }));
    const waiting = await storeAt(procedural, skillOf({ name: 'waiting', status: 'pending_review' }));
    await expect(promoteSkill(procedural, wide, { ...decision(1), scope: 'tenant' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(promoteSkill(procedural, own, { ...decision(1), scope: 'user' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(promoteSkill(procedural, waiting, { ...decision(1), scope: 'tenant' })).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
    });
    const learned = { ...own, sources: ['users/ann', 'tasks/t0192f0c8a1b2'] };
    const everybody = await promoteSkill(procedural, learned, { ...decision(1), scope: 'global' });
    expect(everybody.sources).toEqual(['tasks/t0192f0c8a1b2']);
    expect(everybody).toMatchObject({ scope: { tenant: '@global', agent: '@tenant', user: null }, status: 'candidate' });
  });

  it('requires callees that its new readers see', async () => {
    const procedural = new FakeProceduralMemory();
    const needed = await storeAt(procedural, skillOf({ name: 'parse', status: 'active' }));
    const pin = { name: 'parse', tenant: 'acme', agent: 'coder', user: needed.scope.user, version: 1, digest: needed.digest };
    const own = await storeAt(procedural, skillOf({ status: 'active', dependencies: [pin] }));
    const share = () => promoteSkill(procedural, own, { ...decision(1), scope: 'tenant' });
    await expect(share()).rejects.toMatchObject({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('"parse"') as string });
    await storeAt(procedural, skillOf({ name: 'parse', status: 'active', scope: shared }));
    const copy = await share();
    expect(copy.dependencies).toEqual([{ ...pin, agent: '@tenant', user: null }]);
    expect(copy).toMatchObject({ digest: own.digest });
  });
});
