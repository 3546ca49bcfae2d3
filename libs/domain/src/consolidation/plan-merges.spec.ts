import type { Skill } from '@etude/contracts/memory';
import { expect, it } from 'vitest';
import { NOTHING_FOUND, signProof } from '../skills/proof/proof.js';
import { skillDigest } from '../skills/content-digest.js';
import { TEST_SIGNER } from '../../test/bundle-fixture.js';
import { FakeProceduralMemory } from '../../test/fake-procedural-memory.js';
import { skillOf } from '../../test/memory-records.js';
import { rollbackSkill } from '../skills/life/decisions.js';
import { mergeAll, planMerges, skillsToCompare } from './plan-merges.js';

const scope = { tenant: 'acme', agent: 'solver', user: null };
const who = { by: 'consolidation', at: 9 };

/** An active skill. Its verification found that it and `like` pass each other's tests. */
function active(name: string, like: string | null, over: Partial<Skill> = {}, found: Partial<typeof NOTHING_FOUND> = {}): Skill {
  const given = skillOf({
    scope,
    name,
    code: `def ${name}(n):\n    return n * 2 + len('${name}')\n`,
    cues: [`cue of ${name}`],
    fingerprints: [name],
    ...over,
  });
  const skill: Skill = { ...given, status: 'active', digest: skillDigest(given) };
  const pair = { agent: 'solver', user: null, version: 1, similarity: 0.9, passesTheirs: true, theyPass: true };
  const alike = like === null ? [] : [{ ...pair, name: like }];
  return { ...skill, proof: signProof(skill, { ...NOTHING_FOUND, alike, ...found }, TEST_SIGNER, 1) };
}

const GOOD = { mutantsMade: 4, mutantsNoticed: 4, testsPassed: 4 };
const namesOf = (skills: readonly Skill[]) => planMerges(skills).map(({ into, from }) => [into.name, from.name]);

it('merges the skill with less evidence or success into the other', () => {
  expect(namesOf([active('twice', null, {}, GOOD), active('double', 'twice')])).toEqual([['twice', 'double']]);
  const failing = active('twice', null, { successRate: 0.2 }, GOOD);
  expect(namesOf([failing, active('double', 'twice', {}, { ...GOOD, alike: active('x', 'twice').proof!.alike })])).toEqual([
    ['double', 'twice'],
  ]);
});

const code = (name: string) => ({ code: `def ${name}(n):\n    return n * 2\n`, entryPoint: name });

it('merges equal codes with other names', () => {
  const all = ['double', 'again'].map((name) => active(name, null, code(name)));
  const ofAnn = active('anns', null, { ...code('anns'), scope: { ...scope, user: 'ann' } });
  expect(namesOf([ofAnn, active('twice', null, code('twice'), GOOD), ...all])).toEqual([
    ['twice', 'double'],
    ['twice', 'again'],
  ]);
});

it('does not merge again what somebody brought back', async () => {
  const procedural = new FakeProceduralMemory().keep(active('twice', null, {}, GOOD), active('double', 'twice'));
  const all = () => Array.fromAsync(procedural.every({ tenant: 'acme', agent: null }));
  await mergeAll(planMerges(await all()), who, procedural);
  await rollbackSkill(procedural, (await procedural.get(scope, 'double'))!, { by: 'ann', reason: 'needed', at: 10, toVersion: 1 });
  expect(procedural.statuses()).toEqual(['twice@1 active', 'double@1 active']);
  expect(planMerges(await all())).toEqual([]);
});

it.each([
  ['of another owner', active('twice', null, { scope: { ...scope, user: 'ann' } })],
  ['that is marked', active('twice', null, { untrusted: ['it was imported'] })],
  ['of another version', active('twice', null, { version: 2 })],
  ['that takes other parameters', active('twice', null, { contract: { parameters: [] } as never })],
])('never merges with a skill %s', (_what, other) => {
  expect(namesOf([other, active('double', 'twice')])).toEqual([]);
});

it('needs both to pass the tests of the other', () => {
  const half = active('double', 'twice').proof!.alike.map((one) => ({ ...one, theyPass: false }));
  expect(namesOf([active('twice', null), active('double', null, {}, { alike: half })])).toEqual([]);
});

const since = (skill: Skill, at: number): Skill => ({
  ...skill,
  history: [{ at, by: 'verification', from: 'verified', to: 'active', reason: '' }],
});
const toCompare = (...skills: readonly Skill[]) => skillsToCompare(skills).map(({ name }) => name);

it('has skills compared that were verified at the same time and solved one task', () => {
  const cues = ['Double it.'];
  const [one, other] = [active('twice', null, { cues, createdAt: 1 }), active('double', null, { cues, createdAt: 2 })];
  expect(toCompare(since(one, 5), since(other, 5))).toEqual(['double']);
  expect(toCompare(since(one, 0), since(other, 0))).toEqual([]);
  expect(toCompare(since(one, 5), since({ ...other, cues: ['Treble it.'] }, 5))).toEqual([]);
});
