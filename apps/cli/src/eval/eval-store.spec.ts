import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { RequestId } from '@etude/contracts/ids';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { sampleOf } from './eval-result.js';
import { type EvalPlan, EvalStore } from './eval-store.js';

const plan: EvalPlan = {
  run: '20260101-000000-beef',
  format: 'humaneval',
  file: '/data/x.jsonl',
  sha256: 'ab',
  limit: null,
  attempts: 2,
  samples: 1,
  memory: 'off',
  agent: 'eval',
  createdAt: '2026-01-01T00:00:00.000Z',
};

describe('EvalStore', () => {
  let home: string;
  beforeEach(() => void (home = temporaryFolder()));

  it('finds plan and results again', () => {
    const store = EvalStore.create(home, plan);
    store.add({ ...sampleOf('HumanEval/1', 1, null, ''), error: null });
    const again = EvalStore.open(home, plan.run);
    expect(again.plan).toEqual(plan);
    expect(again.latest('HumanEval/1', 1)).toMatchObject({ id: 'HumanEval/1' });
  });

  it('takes half a last line for a sample that is not finished', () => {
    const store = EvalStore.create(home, plan);
    store.add(sampleOf('a', 1, null, ''));
    appendFileSync(join(home, 'eval', `${plan.run}.jsonl`), '{"kind":"problem","id":"b","samp');
    const again = EvalStore.open(home, plan.run);
    expect([again.latest('a', 1)?.id, again.latest('b', 1)]).toEqual(['a', undefined]);
  });

  it('asks under the same request id until an error ended that task', () => {
    const store = EvalStore.create(home, plan);
    const first = store.requestId('HumanEval/1', 1);
    expect(RequestId.safeParse(first).success).toBe(true);
    expect(store.requestId('HumanEval/1', 1)).toBe(first);
    expect(store.requestId('HumanEval/1', 2)).not.toBe(first);
    store.add(sampleOf('HumanEval/1', 1, null, 'MODEL_UNAVAILABLE: gone'));
    expect(store.requestId('HumanEval/1', 1)).toBe(`${first}-again1`);
  });
});
