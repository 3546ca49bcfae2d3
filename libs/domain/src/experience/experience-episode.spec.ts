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

describe('succeeded', () => {
  it.each([
    [0, 0, false],
    [1, 0, true],
    [10, 2, true],
    [10, 3, false],
    [3, 1, false],
    [4, 1, true],
  ])('%i outcomes with %i errors: %s', (count, errors, expected) => {
    const outcomes = Array.from({ length: count }, (_, i) => ({ type: i < errors ? 'action_error' : 'done' }));
    expect(succeeded({ outcomes })).toBe(expected);
  });
});

describe('experienceEpisode', () => {
  it('is one episode for the same content, whenever it is told', () => {
    expect(experienceEpisode({ ...told, at: 2_000 }).id).toBe(experienceEpisode(told).id);
    expect(experienceEpisode({ ...told, reflection: 'cold' }).id).not.toBe(experienceEpisode(told).id);
  });

  it('is one episode for one key, owner and content', () => {
    const keyed = experienceEpisode({ ...told, key: 'k1' }).id;
    expect(experienceEpisode({ ...told, key: 'k1', at: 2_000 }).id).toBe(keyed);
    expect(experienceEpisode({ ...told, key: 'k2' }).id).not.toBe(keyed);
    expect(experienceEpisode({ ...told, key: 'k1', reflection: 'cold' }).id).not.toBe(keyed);
    for (const other of [{ tenant: 'globex' }, { agent: 'other' }, { user: 'bob' }])
      expect(experienceEpisode({ ...told, key: 'k1', scope: { ...told.scope, ...other } }).id).not.toBe(keyed);
  });

  it.each(['', ' ', '\u200B'])('has no reflection where there is nothing to see in it: %j', (reflection) => {
    expect(experienceEpisode({ ...told, reflection }).reflection).toBeNull();
  });

  it('keeps what was told, whole', () => {
    expect(experienceEpisode(told)).toMatchObject({ prompt: 'at the river', experience: told.experience, reflection: null, success: true });
  });
});
