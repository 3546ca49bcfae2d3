import { create } from '@bufbuild/protobuf';
import {
  LearningSchema,
  LearningState,
  StepExplanationSchema,
  StopReason,
  TaskEventSchema,
  TaskSchema,
  TaskState,
  Verdict,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { describe, expect, it } from 'vitest';
import { allCalls, eventLine, explanationText, outcomeLine, taskText, unjudgedAnswer } from './task-lines.js';

const solved = (scripted: boolean) =>
  create(TaskSchema, {
    name: 'tasks/t1',
    state: TaskState.SUCCEEDED,
    stopReason: StopReason.SOLVED,
    spec: { prompt: 'Add two numbers.\nDetails.' },
    result: {
      verdict: Verdict.AC,
      code: 'print(3)\n',
      casesPassed: 2,
      casesTotal: 2,
      scripted,
      model: 'm',
      skill: 'skills/add/versions/1',
    },
    usage: { attempts: 1, modelCalls: 2, inputTokens: 7n, outputTokens: 3n },
  });

describe('task lines', () => {
  it('mark scripted answers in every format', () => {
    const step = create(TaskEventSchema, {
      event: { case: 'stepFinished', value: { step: 'a1.generate', attempt: 1, kind: 'generate', summary: 'code', scripted: true } },
    });
    const shown = [outcomeLine(solved(true)), taskText(solved(true)), eventLine(step)];
    for (const text of shown) expect(text).toContain('[scripted]');
    expect(taskText(solved(false))).not.toContain('[scripted]');
  });

  it('print the outcome of a task and its usage', () => {
    expect(outcomeLine(solved(false))).toBe('succeeded (solved) AC 2/2 by skills/add/versions/1 · 1 attempt, 2 model calls, 10 tokens');
  });

  it('show the plain fields of a spec, but no reference solution', () => {
    const spec = { prompt: 'Add.', agent: 'solver', user: 'ann', priority: 3, untrusted: true, referenceSolution: 'print(2)' };
    const text = taskText(create(TaskSchema, { spec }));
    for (const row of [/^agent +solver$/m, /^user +ann$/m, /^priority +3$/m, /^untrusted +yes$/m]) expect(text).toMatch(row);
    expect(text).not.toContain('print(2)');
  });

  it('show learning apart from the task, and add its calls up', () => {
    const usage = { modelCalls: 1, inputTokens: 4n, outputTokens: 1n };
    const learning = create(LearningSchema, { state: LearningState.DONE, usage });
    const task = create(TaskSchema, { ...solved(false), learning });
    expect(taskText(task)).toMatch(/^learning +done · 1 model call, 5 tokens$/m);
    expect(taskText(create(TaskSchema, { learning: { state: LearningState.NONE } }))).not.toContain('learning');
    expect(allCalls(task)).toEqual({ modelCalls: 3, inputTokens: 11, outputTokens: 4, costUsd: 0 });
  });

  it('say that nothing was judged without an evaluator', () => {
    const result = { reason: 'ran to its end' };
    const task = create(TaskSchema, { state: TaskState.SUCCEEDED, stopReason: StopReason.SOLVED, result });
    expect(outcomeLine(task)).toBe('succeeded not judged');
    const event = { case: 'attemptFinished', value: { attempt: 1, ...result } } as const;
    expect(eventLine(create(TaskEventSchema, { event }))).toBe('  attempt 1 not judged');
  });

  it('show the open question of a task, and its event', () => {
    const question = { key: 'a1.s1.t1', text: 'Which year?' };
    expect(taskText(create(TaskSchema, { state: TaskState.INPUT_REQUIRED, question }))).toMatch(/question +Which year\?/);
    expect(eventLine(create(TaskEventSchema, { event: { case: 'question', value: question } }))).toBe('  asks a1.s1.t1: Which year?');
  });

  it('show the prompt of a step by its sections', () => {
    const section = { role: 'user', title: 'Task', text: '# Task\n\nAdd.\n', tokens: 4, sources: ['facts/f1'] };
    const explained = create(StepExplanationSchema, { step: 'a1.generate', sections: [section], totalTokens: 4, steps: ['a1.generate'] });
    expect(explanationText(explained)).toBe(
      'a1.generate asked the model with 4 tokens\n\n--- user · Task · 4 tokens · facts/f1\n# Task\n\nAdd.\n\nsteps: a1.generate',
    );
  });

  it('show the output of a task without an evaluator', () => {
    const result = { output: '76127\n' };
    const none = { case: 'none', value: {} } as const;
    const judged = { case: 'command', value: { command: 'true' } } as const;
    expect(unjudgedAnswer(create(TaskSchema, { spec: { evaluator: { kind: none } }, result }))).toBe('76127');
    expect(unjudgedAnswer(create(TaskSchema, { spec: { evaluator: { kind: judged } }, result }))).toBe('');
  });
});
