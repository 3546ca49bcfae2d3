import type { Skill } from '@etude/contracts/memory';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { approveSkill } from '@etude/domain/skills/life/approve';
import { rollbackSkill } from '@etude/domain/skills/life/rollback';
import { findSkill, searchSkills } from '@etude/domain/skills/life/find-skill';
import { promoteSkill } from '@etude/domain/skills/life/promote-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { neededSkills } from '@etude/domain/skills/use/bundle-code';
import { NEW_YEAR, SCOPE, skillOf, skillUseOf } from '@etude/domain/testing/memory-records';
import { proofOf } from '@etude/domain/testing/skill-lives';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import type { RecordStore } from '../record-store.js';
import { memoryOver } from './memory-over-store.js';
import { insertsOf } from './record-inserts.js';
import { earlierKey, skillRecord } from './skill-records.js';

const embedder = new LexicalEmbedder();
const clock = { now: () => NEW_YEAR };
const ALL = { tenant: 'acme', agent: 'coder' };
const DECISION = { by: 'ann', reason: '', at: NEW_YEAR + 9 };
const of = (user: string | null, version: number, changes: Partial<Skill> = {}): Skill => {
  const skill = skillOf({ code: `def total(xs): return '${user} ${version}'`, scope: { ...SCOPE, user }, version, ...changes });
  return { ...skill, proof: proofOf(skill), history: [{ at: NEW_YEAR, by: 'ann', from: 'verified', to: 'active', reason: '' }] };
};

/** Skills as they were kept while versions were counted for all users of an agent together. */
async function keepAsBefore(store: RecordStore, ...skills: readonly Skill[]): Promise<void> {
  const records = skills.map((skill) => ({ ...skillRecord(skill, []), key: earlierKey({ ...skill, agent: skill.scope.agent }) }));
  await store.write('acme', await insertsOf(embedder, records));
}

/** Version 1 is nobody's, 2 and 3 are Ann's, 4 is Bob's. */
async function memoryOfBefore() {
  const store = modelStore();
  await keepAsBefore(
    store,
    of(null, 1, { status: 'active' }),
    of('ann', 2, { status: 'deprecated' }),
    of('ann', 3, { status: 'active' }),
    of('bob', 4, { status: 'pending_review' }),
  );
  return memoryOver(store, { embedder, clock });
}

async function* each(lines: readonly string[]) {
  yield* lines;
}

const numbers = (skills: readonly Skill[]) => skills.map(({ version, scope, status }) => `${scope.user ?? 'nobody'} ${version} ${status}`);

describe('skills that were numbered for all users together', () => {
  it('keep their numbers, and are counted on for each user', async () => {
    const { procedural } = await memoryOfBefore();
    const store = async (user: string | null) => (await procedural.store(of(user, 1, { code: 'print(1)' }))).version;
    expect([await store(null), await store('ann'), await store('bob'), await store('cy')]).toEqual([2, 4, 5, 1]);
    expect(numbers(await procedural.versions({ ...ALL, user: 'ann' }, 'sum_even'))).toEqual([
      'ann 4 candidate',
      'ann 3 active',
      'ann 2 deprecated',
    ]);
    expect(await procedural.get({ ...ALL, user: 'ann' }, 'sum_even', 2)).toMatchObject({ scope: { user: 'ann' } });
    expect(await procedural.get({ ...ALL, user: '@nobody' }, 'sum_even', 2)).toMatchObject({ scope: { user: null }, code: 'print(1)' });
  });

  it('are listed with those that were stored since', async () => {
    const { procedural } = await memoryOfBefore();
    await procedural.store(of(null, 1, { code: 'print(1)' }));
    await procedural.store(of('0', 1));
    await procedural.store(of('ann', 1, { name: 'sum_odd' }));
    const listed = numbers(await procedural.list(ALL, { limit: 9 }));
    expect(listed).toEqual(['nobody 2 candidate', '0 1 candidate', 'ann 3 active', 'bob 4 pending_review', 'ann 1 candidate']);
    const paged: string[] = [];
    for (let after: Skill | undefined; ;) {
      const from = after && { afterName: after.name, afterAgent: after.scope.agent, afterUser: after.scope.user };
      const page: readonly Skill[] = await procedural.list(ALL, { limit: 1, ...from });
      paged.push(...numbers(page));
      if (page.length === 0) break;
      after = page.at(-1);
    }
    expect(paged).toEqual(listed);
  });

  it('are found, moved, used and shown to no other user', async () => {
    const { procedural } = await memoryOfBefore();
    const reader = { ...ALL, user: 'bob' };
    const waiting = (await findSkill(procedural, reader, 'sum_even', { status: 'pending_review' }))!;
    expect(await approveSkill(procedural, waiting, { ...DECISION, digest: waiting.digest })).toMatchObject({
      version: 4,
      status: 'active',
    });
    expect(numbers(await procedural.versions(ALL, 'sum_even', 'active'))).toEqual(['bob 4 active', 'ann 3 active', 'nobody 1 active']);
    const found = await searchSkills(procedural, reader, { text: 'even numbers', limit: 9 });
    expect(numbers(found.map(({ skill }) => skill))).toEqual(['bob 4 active']);
    await procedural.countOffers([keyOf(waiting)]);
    // As a use was told before, and as it is told now.
    const use = skillUseOf({ scope: { ...SCOPE, user: 'bob' }, version: 4 });
    await procedural.recordUse('u1', { ...use, owner: ALL });
    await procedural.recordUse('u2', { ...use, owner: { ...ALL, user: 'bob' } });
    expect(await procedural.get(reader, 'sum_even')).toMatchObject({ version: 4, executionCount: 2, usage: { offered: 1 } });
    await expect(procedural.recordUse('u3', { ...use, scope: { ...SCOPE, user: 'ann' }, owner: ALL })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    const back = await rollbackSkill(procedural, (await findSkill(procedural, { ...ALL, user: 'ann' }, 'sum_even'))!, DECISION);
    expect(back).toMatchObject({ version: 2, status: 'active', scope: { user: 'ann' } });
  });

  it('are pinned, also by pins that name no user, whatever was stored since', async () => {
    const { procedural } = await memoryOfBefore();
    await procedural.store(of(null, 1, { code: 'print(1)' }));
    const [called] = await procedural.versions({ ...ALL, user: 'ann' }, 'sum_even', 'deprecated');
    const pin = { name: 'sum_even', ...ALL, version: 2, digest: called?.digest ?? '' };
    const caller = { name: 'caller', scope: { ...SCOPE, user: 'ann' }, dependencies: [pin] };
    expect(await neededSkills(procedural, caller)).toEqual([called]);
    expect(await neededSkills(procedural, { ...caller, dependencies: [{ ...pin, user: 'ann' }] })).toEqual([called]);
    await expect(neededSkills(procedural, { ...caller, scope: SCOPE })).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  });

  it('are promoted as the next version of those for more readers', async () => {
    const { procedural } = await memoryOfBefore();
    const own = (await findSkill(procedural, { ...ALL, user: 'ann' }, 'sum_even'))!;
    await procedural.store(of(null, 1, { code: 'print(1)', scope: { ...SCOPE, agent: '@tenant' } }));
    const copy = await promoteSkill(procedural, own, { ...DECISION, scope: 'tenant' });
    expect(copy).toMatchObject({ version: 2, digest: own.digest, scope: { agent: '@tenant', user: null }, status: 'candidate' });
    expect(await procedural.get({ ...ALL, user: 'ann' }, 'sum_even', 3)).toEqual(own);
  });

  it('are exported and taken in again, into this store and into another', async () => {
    const lines: string[] = [];
    const before = await memoryOfBefore();
    for await (const line of before.upkeep.exportLines({ tenant: 'acme' })) lines.push(line);
    const take = (memory: typeof before) => memory.upkeep.importLines('acme', each(lines), {});
    expect(await take(before)).toMatchObject({ added: 0, unchanged: 4, refused: [] });
    const other = memoryOver(modelStore(), { embedder, clock });
    expect(await take(other)).toMatchObject({ added: 4, refused: [] });
    expect(await take(other)).toMatchObject({ added: 0, unchanged: 4, refused: [] });
    expect(await other.procedural.versions(ALL, 'sum_even')).toEqual(await before.procedural.versions(ALL, 'sum_even'));
  });
});
