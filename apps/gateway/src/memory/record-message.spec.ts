import { expect, it } from 'vitest';
import { wireFields } from './record-message.js';

it.each([
  [{ code: 'print(3)', success: true }, ['print(3)'], 'solved'],
  [{ code: null, success: false }, [], 'action_error'],
])('shows an episode of a rollout like one of an outside agent: %o', (ended, actions, type) => {
  const fields = { prompt: 'Print 3.', summary: 'how it went', ...ended };
  expect(wireFields({ kind: 'episode', fields })).toEqual({
    ...fields,
    context: ['Print 3.'],
    actions,
    outcomes: [{ type, summary: 'how it went' }],
  });
});
