import { describe, expect, it } from 'vitest';
import { wireFields } from './record-message.js';

describe('the fields of a record, as callers know them,', () => {
  it('are in snake_case with times in RFC 3339, and what is in them is left alone', () => {
    const scope = { tenant: 'acme', agent: 'scout', user: null };
    const fields = { rolloutId: 'r1', recalled: [{ createdAt: 1 }], scope, createdAt: 0, costUsd: 0.5 };
    expect(wireFields({ kind: 'transition', fields })).toEqual({
      rollout_id: 'r1',
      recalled: [{ createdAt: 1 }],
      scope,
      created_at: '1970-01-01T00:00:00.000Z',
      cost_usd: 0.5,
    });
  });

  it('say what a fact states, and how often it was found', () => {
    const fields = { text: 'It leaks.', category: 'general', accessCount: 2, validTo: 1_700_000_000_000, supersededBy: 'f2' };
    expect(wireFields({ kind: 'fact', fields })).toEqual({
      fact: 'It leaks.',
      category: 'general',
      access_count: 2,
      valid_to: '2023-11-14T22:13:20.000Z',
      superseded_by: 'f2',
    });
  });

  it('say what an outside agent told of an episode', () => {
    const experience = { context: ['fog'], actions: ['slow down'], outcomes: [{ type: 'passed', atHelm: 'Mara' }] };
    expect(wireFields({ kind: 'episode', fields: { experience, prompt: 'fog', skillsUsed: ['sound_horn'] } })).toEqual({
      ...experience,
      prompt: 'fog',
      skills_used: ['sound_horn'],
    });
  });

  it.each([
    [{ code: 'print(3)', success: true }, ['print(3)'], 'solved'],
    [{ code: null, success: false }, [], 'action_error'],
  ])('tell an episode of a rollout in the same words: %o', (ended, actions, type) => {
    const fields = { prompt: 'Print 3.', summary: 'how it went', ...ended };
    expect(wireFields({ kind: 'episode', fields })).toEqual({
      ...fields,
      context: ['Print 3.'],
      actions,
      outcomes: [{ type, summary: 'how it went' }],
    });
  });
});
