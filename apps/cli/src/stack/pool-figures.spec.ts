import { expect, it } from 'vitest';
import { figuresOf, poolFigures } from './pool-figures.js';

it('reads what a controller tells, and leaves out what it does not', () => {
  expect(figuresOf('# HELP etude_sandbox_warm x\netude_sandbox_warm 3\netude_sandbox_claims_waiting 1e+1\n')).toEqual({
    ready: 3,
    waiting: 10,
  });
});

it('says nothing of a controller that does not answer', async () => {
  expect(await poolFigures(1)).toEqual({});
});
