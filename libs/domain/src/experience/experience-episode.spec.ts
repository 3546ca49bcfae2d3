import { describe, expect, it } from 'vitest';
import { experienceEpisode, succeeded } from './experience-episode.js';

const told = {
  scope: { tenant: 'acme', agent: 'scout', user: null },
  experience: { context: ['at the river'], actions: ['cross'], outcomes: [{ type: 'ok' }] },
  skillsUsed: [],
  reflection: ' ',
  importance: 0.5,
  key: null,
  at: 1_000,
};

it.each([
  [0, 0, false],
  [1, 0, true],
  [10, 2, true],
  [10, 3, false],
  [3, 1, false],
  [4, 1, true],
])('counts %i outcomes with %i errors as a success: %s', (count, errors, expected) => {
  const outcomes = Array.from({ length: count }, (_, i) => ({ type: i < errors ? 'action_error' : 'done' }));
  expect(succeeded({ outcomes })).toBe(expected);
});

describe('experienceEpisode', () => {
  it.each([null, 'k1'])('has the same id for the same owner, content and key: %s', (key) => {
    const { id } = experienceEpisode({ ...told, key });
    expect(experienceEpisode({ ...told, key, at: 2_000 }).id).toBe(id);
    for (const other of [{ key: 'k2' }, { reflection: 'cold' }]) expect(experienceEpisode({ ...told, key, ...other }).id).not.toBe(id);
    for (const other of [{ tenant: 'globex' }, { agent: 'other' }, { user: 'bob' }])
      expect(experienceEpisode({ ...told, key, scope: { ...told.scope, ...other } }).id).not.toBe(id);
  });

  it.each(['', ' ', '\u200B'])('has no reflection without visible text: %j', (reflection) => {
    expect(experienceEpisode({ ...told, reflection }).reflection).toBeNull();
  });

  it('keeps the whole experience', () => {
    expect(experienceEpisode(told)).toMatchObject({ prompt: 'at the river', experience: told.experience, reflection: null, success: true });
  });
});
