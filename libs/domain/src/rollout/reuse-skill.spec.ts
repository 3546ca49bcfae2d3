import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../recall/fingerprint.js';
import { AnsweringModel, fenced, learnsFromCritique, specOf, type SpecGiven, World } from './rollout-fixture.js';
import { skillOf } from './skill-fixture.js';

const near = (given: Parameters<typeof skillOf>[0], similarity = 0.85) => [{ skill: skillOf(given), similarity }];
const askedIn = (world: World) => (world.model as AnsweringModel).asked;
const solver = () => new AnsweringModel(() => fenced('right'));
const FUNCTION_CASES: SpecGiven = { evaluator: { kind: 'function_cases', entryPoint: 'twice', cases: [{ args: [2], expected: 2 }] } };

describe('reuse of skills', () => {
  it('answers a task solved before with no model call', async () => {
    const world = new World({ skills: near({ fingerprints: [fingerprintOf(specOf())] }, 0) });
    const end = await world.run();
    expect(end).toMatchObject({
      state: 'succeeded',
      stopReason: 'solved',
      result: { skill: 'double_it@1', model: null, scripted: false },
      usage: { attempts: 0, modelCalls: 0, steps: 4 },
    });
    expect(world.steps).toEqual(['a0.skill', 'a0.execute', 'a0.evaluate', 'a0.record']);
    expect(world.outbox.of('skill_use')).toMatchObject([
      { name: 'double_it', version: 1, success: true, fingerprint: fingerprintOf(specOf()) },
    ]);
    expect(world.outbox.of('transition')).toMatchObject([{ transition: { attempt: 0, skill: 'double_it@1', verdict: 'AC' } }]);
    expect(world.outbox.of('episode')).toMatchObject([{ episode: { skillsUsed: ['double_it@1'] } }]);
  });

  it('tries a skill that is near the task', async () => {
    const world = new World({ skills: near({}) });
    expect(await world.run()).toMatchObject({ usage: { modelCalls: 0 }, result: { skill: 'double_it@1' } });
  });

  it('leaves a skill alone that is not near enough', async () => {
    const world = new World({ skills: near({}, 0.79), model: solver() });
    expect(await world.run()).toMatchObject({ result: { skill: null } });
    expect(world.outbox.of('skill_use')).toEqual([]);
  });

  it('gives a function the name that the task asks for', async () => {
    const world = new World({ spec: FUNCTION_CASES, skills: near({ code: 'def double(right):\n    return right', entryPoint: 'double' }) });
    expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: expect.stringMatching(/\ntwice = double$/) } });
  });

  it.each([
    ['a function', specOf(), { entryPoint: 'double', code: 'def double(right): ...' }],
    ['a program', specOf(FUNCTION_CASES), { entryPoint: null }],
    ['a snippet', specOf(), { kind: 'snippet' as const }],
  ])('passes over %s that cannot answer this evaluator', async (_, spec, skill) => {
    const world = new World({ spec, skills: near(skill), model: solver() });
    expect((await world.run()).result?.skill).toBeNull();
  });

  it('records a failing skill and goes on as usual', async () => {
    const world = new World({ skills: near({ code: 'print("no")' }) });
    const end = await world.run();
    expect(end).toMatchObject({ stopReason: 'solved', result: { skill: null }, usage: { attempts: 2, executions: 3 } });
    expect(world.outbox.of('skill_use')).toMatchObject([{ success: false }]);
    expect(askedIn(world)[0]).not.toMatch(/critique|feedback|double_it/i);
  });

  it('asks once for the parameters and prints the result', async () => {
    const model = new AnsweringModel(() => '{"n": 21, "right": "it\'s \\"so\\""}');
    const world = new World({
      spec: { evaluator: { kind: 'none' } },
      skills: near({ code: 'def double(n, right): ...', entryPoint: 'double' }),
      model,
    });
    const end = await world.run();
    expect(end).toMatchObject({ stopReason: 'solved', usage: { modelCalls: 1 } });
    expect(world.steps).toContain('a0.bind');
    expect(end.result?.code).toMatch(/print\(double\(\*\*_json\.loads\("\{\\"n\\":21,\\"right\\":\\"it's \\\\\\"so\\\\\\"\\"\}"\)\)\)$/);
  });

  it.each(['I do not know.', '{}', '{"n": ', '[1]'])('records a skill as failed where the model binds nothing: %s', async (answer) => {
    const model = new AnsweringModel((text) => (text.includes('JSON object') ? answer : fenced('right')));
    const world = new World({
      spec: { evaluator: { kind: 'none' } },
      skills: near({ code: 'def double(n): ...', entryPoint: 'double' }),
      model,
    });
    expect(await world.run()).toMatchObject({ stopReason: 'solved', result: { skill: null }, usage: { attempts: 1, modelCalls: 3 } });
    expect(world.outbox.of('skill_use')).toMatchObject([{ success: false }]);
  });

  it.each<[string, SpecGiven['memory']]>([
    ['memory is off', { off: true }],
    ['the task prefers none', { preferSkills: false }],
    ['the layer is left out', { layers: ['semantic'] }],
  ])('looks for no skill where %s', async (_, memory) => {
    const world = new World({ spec: { memory }, skills: near({}, 1), model: solver() });
    expect((await world.run()).result?.skill).toBeNull();
    expect(world.outbox.of('transition')).toHaveLength(1);
  });

  it('makes no second skill of what a skill solved', async () => {
    const world = new World({ spec: { mode: 'training' }, skills: near({}), model: new AnsweringModel(learnsFromCritique) });
    await world.run();
    expect(world.steps.slice(-2)).toEqual(['t.summary', 't.reflection']);
  });
});
