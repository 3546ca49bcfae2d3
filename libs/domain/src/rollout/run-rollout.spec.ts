import { EtudeError } from '@etude/contracts/errors';
import { describe, expect, it } from 'vitest';
import { programOf } from '../../test/bundle-fixture.js';
import { AnsweringModel, fenced, HIDDEN, learnsFromCritique, REFERENCE, ran, World } from '../../test/rollout-fixture.js';
import { episodeEntry, transitionEntry } from '../retrieval/entries.js';
import { RolloutStop } from './durable-steps.js';
import { runRollout } from './run-rollout.js';

const ATTEMPT = ['a1.draft', 'a1.recall', 'a1.generate', 'a1.execute', 'a1.evaluate', 'a1.record'];
const NOTHING = { search: () => Promise.resolve([]) };
const modelOf = (world: World) => world.model as AnsweringModel;

describe('runRollout', () => {
  it.each([
    ['memory is off', { spec: { memory: { off: true } } }, ['a1.generate', 'a1.execute', 'a1.evaluate', 'a1.record']],
    ["the task's own words find something related", { skills: [{ skill: programOf(), similarity: 0.6 }] }, ATTEMPT.slice(1)],
    ['memory is empty', { deps: { semantic: NOTHING } }, ATTEMPT.slice(1)],
    [
      'only skills are stored, and they are off',
      { deps: { semantic: NOTHING }, skills: [{ skill: programOf(), similarity: 0.5 }], settings: { enabled: false } },
      ATTEMPT.slice(1),
    ],
  ])('asks for no draft where %s', async (_, given, steps) => {
    const { world } = await ran(given);
    expect(world.steps.filter((step) => step.startsWith('a1.'))).toEqual(steps);
    expect(modelOf(world).asked[0]).not.toContain('# Your sketch');
  });

  it('goes draft, recall, generate, execute, evaluate, record and stops on success', async () => {
    const { world, end } = await ran({ model: new AnsweringModel(() => fenced('print("right")')) });
    expect(end).toMatchObject({
      state: 'succeeded',
      stopReason: 'solved',
      result: { verdict: 'AC', casesPassed: 2, casesTotal: 2, skill: null, scripted: true, model: 'fake' },
      error: null,
    });
    expect(world.steps).toEqual(ATTEMPT);
    expect(end.usage).toEqual({ attempts: 1, steps: 6, modelCalls: 2, inputTokens: 20, outputTokens: 10, costUsd: 0.02, executions: 1 });
    expect(world.journals.task.end).toEqual(end);
  });

  it('claims no verdict without an evaluator', async () => {
    const { world } = await ran({
      spec: { mode: 'training', evaluator: { kind: 'none' } },
      model: new AnsweringModel(() => fenced('print("right")')),
    });
    const [transition] = world.outbox.of('transition').map((write) => transitionEntry(write.transition));
    const [episode] = world.outbox.of('episode').map((write) => episodeEntry(write.episode));
    expect(transition?.text).toContain('not judged: ran to its end');
    expect(episode?.text).toContain('Outcome: not judged');
    const summaries = world.journals.events.flatMap((event) => (event.type === 'step' ? event.summary : []));
    expect([...summaries, ...modelOf(world).asked, transition?.text, episode?.text].join('\n')).not.toMatch(/\bAC\b|\bpassed\b|[Ss]olved/);
  });

  it('criticises a failed attempt before the next one', async () => {
    const { world, end } = await ran();
    expect(end).toMatchObject({ stopReason: 'solved', usage: { attempts: 2, modelCalls: 4 } });
    const [draft, first, critique, second] = modelOf(world).asked;
    for (const text of [draft, first]) expect(text).not.toMatch(/critique|criticis|feedback/i);
    expect(critique).toMatch(/print\("no"\)[^]*# Critique/);
    expect(second).toMatch(/print\("no"\)[^]*Feedback:[^]*# Critique[^]*print\("right"\)/);
  });

  it('sends events to watchers in order', async () => {
    const { world } = await ran();
    const told = world.journals.events.map((event) => (event.type === 'step' ? event.kind : event.type));
    expect(told.slice(2, 11).join(' ')).toBe(
      'attempt_started draft recall generate execute evaluate attempt_finished record attempt_started',
    );
    expect(told.at(-1)).toBe('finished');
  });

  it('records every transition losslessly, and one episode', async () => {
    const { world } = await ran();
    const transitions = world.outbox.of('transition').map(({ transition }) => transition);
    expect(transitions.map(({ id, verdict, code }) => [id, verdict, code])).toEqual([
      ['t00000000-r1.a1', 'WA', 'print("no")'],
      ['t00000000-r1.a2', 'AC', 'print("right")'],
    ]);
    expect(transitions[1]).toMatchObject({
      critique: fenced('print("right")'),
      draft: null,
      thought: 'My thought.',
      inputTokens: 20,
      prompt: world.input.task.spec.prompt,
    });
    expect(world.outbox.of('episode')).toMatchObject([
      { episode: { success: true, code: 'print("right")', attempts: 2, reflection: null, summary: expect.stringContaining('Solved') } },
    ]);
    expect(world.outbox.of('skill')).toEqual([]);
  });

  it('gives every call the task in full and verbatim', async () => {
    const prompt = 'Weird  spacing,\n\n  <task> tags </task>, "quotes" \\ and 😀\n'.repeat(3).trim();
    const { world } = await ran({ spec: { prompt, mode: 'training', referenceSolution: REFERENCE } });
    expect(modelOf(world).asked).toHaveLength(5);
    for (const text of modelOf(world).asked) expect(text).toContain(prompt);
  });

  it('continues after an answer without code', async () => {
    const { world, end } = await ran({
      model: new AnsweringModel((text) => (/critique/i.test(text) ? fenced('print("right")') : 'I would rather not.')),
    });
    expect(end.stopReason).toBe('solved');
    expect(world.outbox.of('transition')[0]?.transition).toMatchObject({
      verdict: 'RE',
      reason: 'the answer held no code',
      code: '',
      thought: 'I would rather not.',
    });
    expect(world.steps).not.toContain('a1.execute');
  });

  it('cuts a thousand-page answer before the next prompt', async () => {
    const { world } = await ran({
      model: new AnsweringModel((text) => fenced(`${/critique/i.test(text) ? 'right' : 'no'}\n${'#'.repeat(3_000_000)}`)),
    });
    expect(Math.max(...modelOf(world).asked.map((text) => text.length))).toBeLessThan(100_000);
    expect(world.outbox.of('transition')[0]?.transition.code.length).toBeGreaterThan(2_999_999);
  });

  it('keeps the best attempt when attempts run out', async () => {
    const { world, end } = await ran({
      spec: { limits: { attemptsMax: 2 } },
      model: new AnsweringModel((_, call) => fenced(call === 2 ? 'half' : 'no')),
      runs: (run) => ({ stdout: 'code' in run && run.code === 'half' && run.kind === 'program' && run.stdin === '1' ? '2' : 'x' }),
    });
    expect(end).toMatchObject({
      state: 'failed',
      stopReason: 'attempts',
      result: { verdict: 'WA', code: 'half', casesPassed: 1 },
      usage: { attempts: 2 },
    });
    expect(world.outbox.of('episode')).toMatchObject([{ episode: { success: false, code: null } }]);
  });
});

const describesOnly = (text: string) => (text.includes('# Lessons') ? '{"description": "Doubles."}' : fenced('right'));

describe('training', () => {
  const spec = { mode: 'training', referenceSolution: REFERENCE } as const;

  it('adds summary, reflection with the reference, and a skill, by one call after the verdict', async () => {
    const { world, end } = await ran({ spec });
    expect(world.learned).toEqual(['t.skill']);
    expect(end.usage.modelCalls).toBe(4);
    expect(world.journals.task.learning).toMatchObject({ state: 'done', usage: { modelCalls: 1, inputTokens: 10, outputTokens: 5 } });
    expect(modelOf(world).asked.at(-1)).toContain(REFERENCE);
    expect(world.outbox.of('episode')).toMatchObject([{ episode: { summary: 'It was doubled.', reflection: 'Read before you print.' } }]);
    expect(world.outbox.of('skill')).toMatchObject([
      {
        skill: {
          status: 'candidate',
          code: 'print("right")',
          description: expect.stringMatching(/Doubles a number\.[^]*doubling loaves/),
          scripted: true,
        },
      },
    ]);
  });

  it('reflects on a failure without making a skill', async () => {
    const { world } = await ran({ spec: { ...spec, limits: { attemptsMax: 1 } } });
    expect(world.learned).toEqual(['t.lessons']);
    expect(world.outbox.of('skill')).toEqual([]);
  });

  const AT_ONCE = { summary: expect.stringMatching(/^Solved: The baker/), reflection: null };
  it.each([
    ['only describes', {}, ['t.skill'], 1],
    ['asks nothing about', { autoRegisterSkills: false }, [], 0],
  ])('%s an answer that was accepted at once', async (_, settings, learned, skills) => {
    const model = new AnsweringModel(describesOnly);
    const { world } = await ran({ spec, model, settings });
    expect(world.learned).toEqual(learned);
    expect(model.asked.filter((text) => /summarise|reflect\.|reference/i.test(text))).toEqual([]);
    expect(world.outbox.of('episode')).toMatchObject([{ episode: AT_ONCE }]);
    expect(world.outbox.of('skill')).toHaveLength(skills);
  });

  it.each([
    ['takes the docstring for the description', '    """Doubles any\n    number of loaves."""\n', [], 'Doubles any number of loaves.'],
    ['asks for a description where the docstring tells nothing', '    """Doubles."""\n', ['t.skill'], 'Doubles.'],
  ])('%s of an answer that was accepted at once', async (_, docstring, learned, description) => {
    const code = `def twice(n: int = 1) -> int:\n${docstring}    return "right"`;
    const model = new AnsweringModel((text) => (text.includes('# Lessons') ? '{"description": "Doubles."}' : fenced(code)));
    const evaluator = { kind: 'function_cases' as const, entryPoint: 'twice', cases: [{ args: [2], expected: 2 }] };
    const { world } = await ran({ spec: { ...spec, evaluator }, model });
    expect(world.learned).toEqual(learned);
    expect(world.outbox.of('skill')).toMatchObject([{ skill: { description: expect.stringContaining(description) } }]);
  });

  it.each([
    ['tokens', { modelTokensMax: 100 }],
    ['wall time', { wallMs: 0 }],
  ])('keeps a plain summary where its limit of %s is reached, and the verdict stands', async (_, learning) => {
    const world = new World({ spec, learning });
    expect(await world.run()).toMatchObject({ state: 'succeeded', stopReason: 'solved' });
    expect(world.learned).toEqual([]);
    expect(world.journals.task.learning).toMatchObject({ state: 'failed', error: { message: expect.stringContaining('limit') } });
    expect(world.outbox.of('episode')).toMatchObject([{ episode: { summary: expect.stringContaining('Solved'), reflection: null } }]);
  });

  it("is not ended by the task's wall time", async () => {
    const world = new World({ spec: { ...spec, limits: { wallMs: 500, modelTokensMax: 61 } } });
    const journal = world.journals.open()!;
    await runRollout(world.input, { ...world.deps, journal }, new AbortController().signal);
    world.clock.advance(500);
    await world.learn();
    expect(world.journals.task).toMatchObject({ state: 'succeeded', learning: { state: 'done' } });
  });

  it('keeps a plain summary and the skill where the answer is no JSON', async () => {
    const { world } = await ran({ spec, model: new AnsweringModel((text) => fenced(/critique|# Lessons/i.test(text) ? 'right' : 'no')) });
    expect(world.outbox.of('episode')).toMatchObject([{ episode: { summary: expect.stringContaining('Solved'), reflection: null } }]);
    expect(world.outbox.of('skill')).toMatchObject([{ skill: { description: expect.stringContaining('The baker doubles') } }]);
  });

  it('fails with the last error of the model, and the verdict stands', async () => {
    const down = new EtudeError('MODEL_UNAVAILABLE', 'down');
    const model = new AnsweringModel((text) => (text.includes('# Lessons') ? Promise.reject(down) : learnsFromCritique(text)));
    const world = new World({ spec, model, deps: { givesUp: () => true } });
    await expect(world.run()).rejects.toBe(down);
    const error = { code: 'MODEL_UNAVAILABLE', message: 'down' };
    expect(world.journals.task).toMatchObject({ state: 'succeeded', learning: { state: 'failed', error } });
  });

  it('writes no memory and asks for no lessons if memory is read-only', async () => {
    const { world } = await ran({ spec: { ...spec, memory: { readOnly: true } } });
    expect(world.outbox.writes.size).toBe(0);
    expect(world.steps.filter((step) => step.startsWith('t.') || step.endsWith('record'))).toEqual([]);
  });
});

describe('limits', () => {
  it.each([
    ['steps', { stepsMax: 5 }, ATTEMPT],
    ['model_tokens', { modelTokensMax: 30 }, ATTEMPT],
    ['cost', { costUsdMax: 0.005 }, ['a1.draft', 'a1.recall']],
  ] as const)('stops for %s', async (stopReason, limits, steps) => {
    const world = new World({ spec: { limits } });
    expect(await world.run()).toMatchObject({ state: 'failed', stopReason });
    expect(world.steps).toEqual(steps);
  });

  it("stops at the next model call when the tenant's budget is used up, and keeps what was tried", async () => {
    const usedUp = new EtudeError('BUDGET_USED_UP', 'no tokens left');
    const model = new AnsweringModel((text, call) => (call < 3 ? learnsFromCritique(text) : Promise.reject(usedUp)));
    const world = new World({ model });
    expect(await world.run()).toMatchObject({ state: 'failed', stopReason: 'budget', result: { verdict: 'WA' } });
    expect(world.outbox.of('transition')).toHaveLength(1);
  });

  it('counts wall time from the start of the rollout, not of the worker', async () => {
    const world = new World({ spec: { limits: { wallMs: 500 } } });
    world.clock.advance(500);
    expect(await world.run()).toMatchObject({ state: 'failed', stopReason: 'wall_time', result: null });
    expect(world.steps).toEqual([]);
  });

  it('stops at the next step after a requested cancellation', async () => {
    const world: World = new World({ model: new AnsweringModel((text) => (world.journals.cancel(), learnsFromCritique(text))) });
    expect(await world.run()).toMatchObject({ state: 'cancelled', stopReason: 'cancelled', result: null });
    expect(world.steps).toEqual(['a1.draft']);
  });

  it.each(['cancelled', 'wall_time'] as const)('stops a running model call when aborted by %s', async (stopReason) => {
    const abort = new AbortController();
    const world = new World({ model: new AnsweringModel(() => (abort.abort(new RolloutStop(stopReason)), 'late')) });
    expect(await world.run(abort.signal)).toMatchObject({ stopReason });
  });

  it('keeps earlier attempts when cancelled while code runs', async () => {
    const abort = new AbortController();
    const world = new World({
      runs: (run) => ('code' in run && run.code.includes('right') && abort.abort(new RolloutStop('cancelled')), { stdout: 'x' }),
    });
    expect(await world.run(abort.signal)).toMatchObject({ state: 'cancelled', result: { verdict: 'WA', code: 'print("no")' } });
    expect(world.outbox.of('transition')).toHaveLength(1);
    expect(world.outbox.of('episode')).toHaveLength(1);
  });

  it('leaves the rollout to the next worker when this one shuts down', async () => {
    const abort = new AbortController();
    const world = new World({ model: new AnsweringModel(() => (abort.abort(new DOMException('shutting down', 'AbortError')), 'late')) });
    await expect(world.run(abort.signal)).rejects.toMatchObject({ name: 'AbortError' });
    expect(world.journals.task).toMatchObject({ state: 'running', end: null });
  });
});

describe('errors', () => {
  it('throws an error of the model, and continues there in the next run', async () => {
    let down = true;
    const model = new AnsweringModel((text, call) => {
      if (call === 2 && down) throw new EtudeError('MODEL_UNAVAILABLE', 'gone');
      return learnsFromCritique(text);
    });
    const world = new World({ model });
    await expect(world.run()).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
    down = false;
    expect(await world.run()).toMatchObject({ stopReason: 'solved', usage: { modelCalls: 4 } });
    expect(model.asked).toHaveLength(5);
  });

  it('ends the task with the last error and keeps its best attempt', async () => {
    const model = new AnsweringModel((text, call) => {
      if (call === 3) throw new EtudeError('MODEL_UNAVAILABLE', 'gone');
      return learnsFromCritique(text);
    });
    const world = new World({ model, deps: { givesUp: () => true } });
    await expect(world.run()).rejects.toMatchObject({ code: 'MODEL_UNAVAILABLE' });
    expect(world.journals.task.end).toMatchObject({
      state: 'failed',
      stopReason: 'error',
      result: { verdict: 'WA' },
      error: { code: 'MODEL_UNAVAILABLE', message: 'gone' },
    });
    expect(world.outbox.of('episode')).toEqual([]);
  });

  it('runs the code again under a new id if the sandbox was lost', async () => {
    let lost = 2;
    const world = new World({
      model: new AnsweringModel(() => fenced('right')),
      runs: (run) => (lost-- > 0 ? { exit: 'node_lost' } : { stdout: run.kind === 'program' && run.stdin === '1' ? '2' : `${HIDDEN}-out` }),
    });
    expect(await world.run()).toMatchObject({ stopReason: 'solved', usage: { executions: 3 } });
    expect(new Set(world.sandboxes.requests.map(({ executionId }) => executionId)).size).toBe(3);
  });

  it('journals no verdict while the sandbox stays lost', async () => {
    const world = new World({ runs: () => ({ exit: 'infra' }) });
    await expect(world.run()).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    expect(world.steps).not.toContain('a1.execute');
  });

  it('throws if memory is unavailable, rather than recalling nothing', async () => {
    const gone = { search: () => Promise.reject(new EtudeError('MEMORY_UNAVAILABLE', 'gone')) };
    const world = new World({ deps: { episodic: gone } });
    await expect(world.run()).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });
});
