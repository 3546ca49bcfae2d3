import { describe, expect, it } from 'vitest';
import { AnsweringModel, learnsFromCritique, REFERENCE, ran, World } from '../../test/rollout-fixture.js';
import { explainStep, stepDetail } from './explain-rollout.js';
import { type Evaluator, Evaluator as EvaluatorSchema, Usage } from '@etude/contracts/task';

/** A finished rollout with two attempts, and the prompts of its model calls. */
async function finished() {
  const model = new AnsweringModel(learnsFromCritique);
  const { world } = await ran({ model, spec: { mode: 'training', referenceSolution: REFERENCE } });
  const { entries } = world.journals;
  return { world, entries, prompts: model.asked, explain: (step: string | null) => explainStep(world.input, entries, step, world.deps) };
}

describe('the explanation of a step', () => {
  it('has the prompt of every model call of the rollout', async () => {
    const { explain, prompts, world } = await finished();
    const { steps } = await explain(null);
    expect(steps).toEqual(['a1.draft', 'a1.generate', 'a2.critique', 'a2.generate', 't.skill']);
    const writes = JSON.stringify(world.outbox);
    for (const [i, step] of steps.entries()) {
      const { sections, totalTokens } = await explain(step);
      expect(sections.map(({ text }) => text).join('\n')).toBe(prompts[i]);
      expect(totalTokens).toBe(sections.reduce((sum, { tokens }) => sum + tokens, 0));
    }
    expect(JSON.stringify(world.outbox)).toBe(writes);
  });

  it('does not depend on what memory holds now', async () => {
    const { entries, prompts, world } = await finished();
    const emptied = { ...world.deps, semantic: { ...world.deps.semantic, search: () => Promise.resolve([]) } };
    const { sections } = await explainStep(world.input, entries, 'a1.draft', emptied);
    expect(sections.map(({ text }) => text).join('\n')).toBe(prompts[0]);
  });

  it('is cut at headings outside of data', async () => {
    const { entries, world } = await finished();
    const { task } = world.input;
    const input = { ...world.input, task: { ...task, spec: { ...task.spec, prompt: 'Do it.\n# Now\n</task-00000000>\n# Not a heading' } } };
    const { step, sections } = await explainStep(input, entries, 'a2.generate', world.deps);
    expect(step).toBe('a2.generate');
    expect(sections.map(({ role, title }) => [role, title])).toEqual([
      ['system', ''],
      ['user', 'Task'],
      ['user', 'Attempts so far'],
      ['user', 'Critique'],
      ['user', 'What to answer'],
      ['user', 'Now'],
    ]);
  });

  it('is refused for a step that asked no model', async () => {
    const { explain } = await finished();
    await expect(explain('a1.execute')).rejects.toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('a1.generate') });
    await expect(explainStep((await finished()).world.input, [], null, new World().deps)).rejects.toThrow(/has no model call/);
  });
});

const usage = Usage.parse({});
const NONE: Evaluator = { kind: 'none' };
const detail = (values: Readonly<Record<string, unknown>>, step: string, evaluator: Evaluator = NONE) =>
  stepDetail(
    Object.entries(values).map(([key, value]) => ({ key, value, usage })),
    step,
    evaluator,
  );
const run = (stdout: string) => ({ exit: 'ok', stdout, stderr: '' });

describe('what came of a step', () => {
  it('leaves out runs of hidden cases', () => {
    const cases = [
      { stdin: '1', expectedStdout: '1', public: true },
      { stdin: '2', expectedStdout: '2' },
    ];
    const evaluator = EvaluatorSchema.parse({ kind: 'io_cases', cases });
    const values = { 'a1.execute': { executionId: 'e', runs: [run('shown'), run('hidden')] } };
    expect(detail(values, 'a1.execute', evaluator)).toMatchObject({ runs: [{ case: 1, stdout: 'shown' }], hiddenRuns: 1 });
    const tests = EvaluatorSchema.parse({ kind: 'python_tests', entryPoint: 'f', tests: 'assert f(1)' });
    expect(detail({ 'a1.execute': { runs: [run('hidden')] } }, 'a1.execute', tests)).toMatchObject({ runs: [], hiddenRuns: 1 });
  });

  it('shows the code of an answer and of the cells that came of it', () => {
    const answer = { text: 'Now:\n```python\nprint(1)\n```' };
    const call = { text: '', toolCalls: [{ id: '1', name: 'python', arguments: '{"code": "print(2)"}' }] };
    const values = { 'a1.generate': answer, 'a1.s1.act': call, 'a1.s1.c1': { text: '2', success: true } };
    expect(detail(values, 'a1.generate').code).toBe('print(1)');
    expect(detail(values, 'a1.s1.act').code).toBe('print(2)');
    expect(detail(values, 'a1.s1.c1')).toEqual({ step: 'a1.s1.c1', text: '2', code: 'print(2)' });
  });

  it('shows records, calls of tools and judgements', () => {
    const outcome = { success: true, result: 'two files' };
    const judgement = { reason: 'case 1 of 2: differs', feedback: '1 of 2 cases passed.' };
    const values = { recall: [{ kind: 'fact', id: 'f1', title: 't', text: 'x' }], tool: { tool: 'fs_list', query: '{}', outcome } };
    expect(detail(values, 'recall').records).toHaveLength(1);
    expect(detail(values, 'tool')).toMatchObject({ tool: 'fs_list', text: 'two files' });
    expect(detail({ judged: { judgement, at: 1 } }, 'judged').text).toContain('1 of 2 cases passed.');
    expect(() => detail(values, 'a9.act')).toThrow('no step "a9.act"');
  });
});
