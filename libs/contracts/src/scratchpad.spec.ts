import { expect, it } from 'vitest';
import { EMPTY_SCRATCHPAD, Scratchpad, workingMemory } from './scratchpad.js';

it('renders only the sections of the Working Memory that have entries', () => {
  expect(workingMemory(EMPTY_SCRATCHPAD)).toBe('');
  const values = [
    { name: 'best', shown: '[1]' },
    { name: 'a', shown: '', lost: 'its class is gone' },
  ];
  expect(workingMemory({ values, observations: [], failedApproaches: ['greedy', 'dp'] })).toBe(
    '## Working Memory\n\n### Stored Values\n- best: [1]\n- a: lost (its class is gone)\n\n### Failed Approaches (avoid these)\n- greedy\n- dp',
  );
  expect(workingMemory({ ...EMPTY_SCRATCHPAD, observations: ['odd'] })).toBe('## Working Memory\n\n### Observations\n- odd');
});

it.each([[{ name: 'a b' }], [{ name: 'a', file: '../a.pickle' }], [{ name: 'a', pickled: '?' }], [{ name: 'x'.repeat(61) }]])(
  'refuses a value that no interpreter reports: %j',
  (value) => {
    expect(Scratchpad.safeParse({ values: [value] }).success).toBe(false);
  },
);
