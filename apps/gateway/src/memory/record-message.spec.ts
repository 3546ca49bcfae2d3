import { expect, it } from 'vitest';
import { wireFields } from './record-message.js';

it('shows the fields of a record in snake_case, with times in RFC 3339 and unchanged values', () => {
  const scope = { tenant: 'acme', agent: 'scout', user: null };
  const fields = { rolloutId: 'r1', recalled: [{ createdAt: 1 }], scope, createdAt: 0, validTo: 1_700_000_000_000, costUsd: 0.5 };
  expect(wireFields({ kind: 'transition', fields })).toEqual({
    rollout_id: 'r1',
    recalled: [{ createdAt: 1 }],
    scope,
    created_at: '1970-01-01T00:00:00.000Z',
    valid_to: '2023-11-14T22:13:20.000Z',
    cost_usd: 0.5,
  });
});

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
