import { type Evaluator, Evaluator as EvaluatorSchema, Usage } from '@etude/contracts/task';
import { describe, expect, it } from 'vitest';
import { stepDetail } from './explain-rollout.js';

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
