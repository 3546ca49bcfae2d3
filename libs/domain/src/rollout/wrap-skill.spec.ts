import { expect, it } from 'vitest';
import { provenSkillOf } from '../../test/bundle-fixture.js';
import { PythonSandboxes } from '../../test/python-sandboxes.js';
import { AnsweringModel, fenced, type SpecGiven, World } from '../../test/rollout-fixture.js';

const OWNER = { tenant: 'acme', agent: 'default', user: null };
const DOUBLE = provenSkillOf('double_number', 'def double_number(n):\n    return 2 * n', { n: { type: 'integer' } }, { scope: OWNER });
/** A list of numbers, which the skill doesn't take. */
const SPEC: SpecGiven = {
  evaluator: { kind: 'function_cases', entryPoint: 'double_all', cases: [{ args: [[3, 4]], expected: [6, 8] }] },
};
const WRAPPER = 'from skills import double_number\n\ndef double_all(ns):\n    return [double_number(n) for n in ns]';
const PROGRAM = 'def double_all(ns):\n    return [2 * n for n in ns]';

function worldWith(wrapper: string, spec: SpecGiven = SPEC) {
  const model = new AnsweringModel((text) => (text.includes('# Function to use') ? wrapper : fenced(PROGRAM)));
  const world = new World({ spec, skills: [{ skill: DOUBLE, similarity: 0.9 }], model, deps: { sandboxes: new PythonSandboxes() } });
  return { world, model };
}

it('wraps a near function that does not fit by one short call', async () => {
  const { world, model } = worldWith(fenced(WRAPPER));
  expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: WRAPPER, skill: null }, usage: { modelCalls: 1, attempts: 0 } });
  expect(model.asked[0]).toContain('def double_number');
  expect(model.asked[0]).not.toContain('return 2 * n');
  expect(world.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', version: 1, success: true }]);
  expect(world.outbox.of('transition')).toMatchObject([{ transition: { attempt: 0, imported: ['double_number@1'] } }]);
});

it('learns the wrapper, pinned to the function', async () => {
  const { world } = worldWith(fenced(WRAPPER), { ...SPEC, mode: 'training' });
  await world.run();
  expect(world.outbox.of('skill')).toMatchObject([
    { skill: { name: 'double_all', dependencies: [{ name: 'double_number', version: 1 }] } },
  ]);
});

it.each([
  ['declines', 'no'],
  ['does not import the function', fenced(PROGRAM)],
  ['is long', fenced(`${WRAPPER}\n${'# more\n'.repeat(60)}`)],
])('writes the whole program where the answer %s, and does not blame the function', async (_what, wrapper) => {
  const { world } = worldWith(wrapper);
  expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: PROGRAM }, usage: { modelCalls: 2 } });
  expect(world.outbox.of('skill_use')).toEqual([]);
});

it('continues with attempts where the wrapper is wrong', async () => {
  const { world } = worldWith(fenced(WRAPPER.replace('[double_number(n) for', '[-double_number(n) for')));
  expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: PROGRAM }, usage: { modelCalls: 2, attempts: 1 } });
  expect(world.outbox.of('skill_use')).toMatchObject([{ success: false }]);
});
