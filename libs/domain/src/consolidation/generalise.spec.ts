import type { Episode, Skill } from '@etude/contracts/memory';
import { expect, it } from 'vitest';
import { admissionDeps, candidate, scope } from '../../test/admission-fixture.js';
import { FakeMemoryOutbox } from '../../test/fake-memory-outbox.js';
import { FakeProceduralMemory } from '../../test/fake-procedural-memory.js';
import { episodeOf, settingsOf } from '../../test/memory-records.js';
import { AnsweringModel } from '../../test/rollout-fixture.js';
import { call } from '../../test/skill-tests.js';
import { findSkill } from '../skills/life/find-skill.js';
import { asMember, membersBack } from '../skills/life/merged-skills.js';
import { keyOf, moveOf, reasonsForReview } from '../skills/life/skill-life.js';
import { NOTHING_FOUND, signProof } from '../skills/proof/proof.js';
import { TEST_SIGNER } from '../../test/bundle-fixture.js';
import { admitSkill } from '../skills/proof/admit-skill.js';
import { useSkill } from '../skills/proof/use-skill.js';
import { generalise } from './generalise.js';

const signal = new AbortController().signal;
const PROMPT = 'What is the rent of so many rooms?';
const rentCode = (city: string, rate: number) =>
  `def rent_in_${city}(rooms: int) -> int:\n    if rooms < 1:\n        return 0\n    return rooms * ${rate}\n`;
const testsOf = (rate: number) => [call([2], 2 * rate), call([0], 0), call([1], rate)];

const rent = (city: string, rate: number): Partial<Skill> => ({
  name: `rent_in_${city}`,
  code: rentCode(city, rate),
  entryPoint: `rent_in_${city}`,
  tests: testsOf(rate),
  cues: [PROMPT],
  fingerprints: [city],
  sources: [`tasks/t${city}000000`],
});
const solved = (city: string, rate: number, over: Partial<Episode> = {}): Episode =>
  episodeOf({
    id: `t${city}000000-r1.episode`,
    scope,
    prompt: PROMPT,
    fingerprint: city,
    entryPoint: `rent_in_${city}`,
    code: rentCode(city, rate),
    tests: testsOf(rate),
    ...over,
  });

/** A library in which the rent functions of these cities are active. */
function world(answer: string, active: Readonly<Record<string, number>> = { oslo: 3 }) {
  const procedural = new FakeProceduralMemory();
  const deps = admissionDeps(procedural, { enabled: true, autoRegisterSkills: true });
  const admit = async (skill: Skill) => admitSkill(keyOf(await procedural.store(skill)), deps, signal);
  for (const [city, rate] of Object.entries(active)) {
    const skill = candidate(rent(city, rate));
    procedural.keep({ ...skill, status: 'active', proof: signProof(skill, NOTHING_FOUND, TEST_SIGNER, 1) });
  }
  const model = new AnsweringModel(() => answer);
  const settings = settingsOf({ enabled: true, autoRegisterSkills: true });
  const propose = async (...group: readonly Episode[]) => {
    const skills = await Array.fromAsync(procedural.every({ tenant: 'acme', agent: null }));
    return generalise({ episodes: group, unread: group, group, confirms: false }, skills, 5, { model, settings, procedural }, signal);
  };
  const use = async (name: string) => {
    const useDeps = { ...deps, outbox: new FakeMemoryOutbox() };
    return useSkill({ reader: scope, name, parameters: { rooms: 2 }, useId: name }, useDeps, signal);
  };
  return { procedural, admit, propose, use, asked: model.asked };
}

const rome = solved('rome', 5);
const bonn = solved('bonn', 7);
const general = (body: string) =>
  JSON.stringify({
    code: `def rent(rooms: int, rate: int = 3) -> int:\n    ${body}\n`,
    entryPoint: 'rent',
    description: 'The rent of rooms.',
    calls: [
      { member: 0, fixed: {} },
      { member: 1, fixed: { rate: 5 } },
      { member: 2, fixed: { rate: 7 } },
    ],
  });
const RIGHT = general('return max(0, rooms) * rate');

it('asks the model about the third solution', async () => {
  const { propose, asked } = world(RIGHT);
  expect([(await propose(rome)).skill, asked.length]).toEqual([null, 0]);
  const { skill } = await propose(rome, bonn);
  expect(skill).toMatchObject({ name: 'rent', fingerprints: ['oslo', 'rome', 'bonn'], cues: [PROMPT], origin: 'consolidation' });
  expect([skill?.tests.length, asked.length]).toEqual([9, 1]);
  expect(asked[0]).not.toContain('expected');
});

it('replaces its members when it is active', async () => {
  const { procedural, admit, propose, use, asked } = world(RIGHT, { oslo: 3, rome: 5 });
  expect(await admit((await propose(bonn)).skill!)).toMatchObject({
    status: 'active',
    sources: ['tasks/toslo000000', 'tasks/trome000000', 'tbonn000000-r1.episode'],
  });
  expect(procedural.statuses()).toEqual(['rent_in_oslo@1 deprecated', 'rent_in_rome@1 deprecated', 'rent@1 active']);
  expect(await procedural.get(scope, 'rent_in_rome')).toMatchObject({ statusReason: 'merged into rent@1', replacedBy: 'rent' });
  expect(await findSkill(procedural, scope, 'rent_in_rome')).toMatchObject({ name: 'rent' });
  expect(await Promise.all(['rent_in_oslo', 'rent_in_rome', 'rent'].map(use))).toMatchObject([
    { result: 6 },
    { result: 10 },
    { result: 6 },
  ]);
  expect([(await propose(bonn)).skill, asked.length]).toEqual([null, 1]);
});

it('lets its members come back when it goes', async () => {
  const { procedural, admit, propose } = world(RIGHT);
  const active = await admit((await propose(rome, bonn)).skill!);
  const decision = { by: 'ann', reason: 'not wanted', at: 99 };
  await procedural.move([moveOf(active, 'archived', decision), ...(await membersBack(procedural, active, decision))]);
  expect(procedural.statuses()).toEqual(['rent_in_oslo@1 active', 'rent@1 archived']);
});

it('answers a task of a member with the arguments of that member only', async () => {
  const { skill } = await world(RIGHT).propose(rome, bonn);
  expect(asMember(skill!, 'rome')?.code).toContain('return rent(*args, **{**__import__("json").loads("{\\"rate\\":5}"), **given})');
  expect(asMember(skill!, 'elsewhere')).toBeNull();
});

it('changes nothing else where the general function fails a test of a member', async () => {
  const { procedural, admit, propose } = world(general('return max(0, rooms) * 3'));
  await admit((await propose(rome, bonn)).skill!);
  expect(procedural.statuses()).toEqual(['rent_in_oslo@1 active', 'rent@1 rejected']);
});

it('has all marks of its members, so that it waits for review', async () => {
  const { skill } = await world(RIGHT).propose(solved('rome', 5, { touched: ['documents/d1'] }), bonn);
  expect(reasonsForReview(skill!)).toEqual(['it was learned where text of documents/d1 was read']);
});

it.each([
  ['code that is known', [solved('oslo', 3)], ''],
  ['code that calls a skill', [solved('rome', 5, { code: `from skills import rent_in_oslo\n${rentCode('rome', 5)}` })], ''],
  ['members that share nothing', [rome, bonn], '{"code": null}'],
])('proposes nothing for %s', async (_what, group, answer) => {
  const { propose } = world(answer);
  expect((await propose(...group)).skill).toBeNull();
});
