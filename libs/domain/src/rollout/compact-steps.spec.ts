import { EtudeError } from '@etude/contracts/errors';
import { describe, expect, it } from 'vitest';
import { FakeChatModel, type FakeAnswer } from '../../test/fake-chat-model.js';
import { type SpecGiven, World } from '../../test/rollout-fixture.js';
import { calls, finalAnswer, stepByStep, textOf } from '../../test/step-fixture.js';
import type { ChatRequest } from '../ports/model.js';
import { explainStep, type PromptSection } from './explain-rollout.js';
import { PROMPT_BUDGETS } from './step-prompts.js';

/** A rollout of 61 steps with long lines. `summary` answers its n-th request for a summary. */
function longWorld(summary: (n: number) => FakeAnswer) {
  const plans = Array.from({ length: 60 }, (_, at) =>
    calls(['write_todos', { todos: [{ content: `${at}`.padEnd(300, '.'), status: 'pending' }] }]),
  );
  const step = stepByStep([...plans, finalAnswer('done')]) as Extract<FakeAnswer, (...given: never[]) => unknown>;
  let asked = 0;
  const model = new FakeChatModel(
    Array.from({ length: 80 }, (): FakeAnswer => (request, signal) => {
      const answer = isSummary(request) ? summary((asked += 1)) : step;
      return typeof answer === 'function' ? answer(request, signal) : answer;
    }),
  );
  const limits = { attemptsMax: 1, agentStepsMax: 61 };
  const spec: SpecGiven = { strategy: 'codeact', evaluator: { kind: 'none' }, memory: { off: true }, limits };
  return { world: new World({ model, spec }), model };
}

const textIn = (sections: readonly PromptSection[]) => sections.flatMap(({ title, text }) => (title === 'Tools' ? [] : text)).join('\n');
const isSummary = (request: ChatRequest) => textOf(request).includes('One summary of all these steps');
/** The sections of a request that show old steps as a summary or as short lines. */
const historyOf = (request: ChatRequest | undefined) =>
  /^# (?:Summary of|Earlier) steps[^]*$/m.exec(request?.messages[1]?.content ?? '')?.[0] ?? '';

describe('a long history of steps', () => {
  it('has the model summarise a long history, seldom and within the budget', async () => {
    const { world, model } = longWorld((n) => `Summary ${n}: the plan grew.`);
    expect(await world.run()).toMatchObject({ state: 'succeeded', usage: { modelCalls: 65 } });
    const compacted = world.steps.filter((step) => step.endsWith('.compact'));
    expect(compacted).toEqual('a1.s19.compact a1.s31.compact a1.s43.compact a1.s55.compact'.split(' '));
    for (const request of model.requests) expect(historyOf(request).length).toBeLessThan(1_500 * 4 + 100);
    expect(historyOf(model.requests.at(-1))).toMatch(
      /^# Summary of steps 1 to 47\n\n<summary-\w+>\nSummary 4: the plan grew[^]*- step 48:/,
    );
    expect(model.requests.at(-1)?.sources).toMatchObject({ 'Summary of steps 1 to 47': ['step a1.s55.compact'] });
    expect(textOf(model.requests.filter(isSummary)[1])).toMatch(/Summary 1: the plan grew[^]*- step 12:/);
  });

  it('is explained as it was asked, whatever the budget is now', async () => {
    const { world, model } = longWorld((n) => `Summary ${n}.`);
    await world.run();
    const { entries } = world.journals;
    const { steps } = await explainStep(world.input, entries, null, world.deps);
    expect(steps).toHaveLength(model.requests.length);
    for (const step of ['a1.s31.compact', 'a1.s31.act', 'a1.s60.act']) {
      const promptBudgets = { ...PROMPT_BUDGETS, history: step.endsWith('.act') ? 100 : 1_500 };
      const { sections } = await explainStep(world.input, entries, step, { ...world.deps, promptBudgets });
      const asked = model.requests[steps.indexOf(step)]?.messages.map(({ content }) => content).join('\n');
      expect(textIn(sections)).toBe(asked);
    }
  });

  it.each<[string, FakeAnswer]>([
    ['is empty', new EtudeError('MODEL_ANSWER_EMPTY', 'empty')],
    ['is too long', 'x'.repeat(3_000)],
  ])('leaves its oldest steps out where a summary %s', async (_, answer) => {
    const { world, model } = longWorld(() => answer);
    expect(await world.run()).toMatchObject({ state: 'succeeded' });
    expect(historyOf(model.requests.at(-1))).toMatch(/^# Earlier steps\n\n<steps-\w+>\n- steps 1 to 47: left out\n- step 48:/);
  });
});
