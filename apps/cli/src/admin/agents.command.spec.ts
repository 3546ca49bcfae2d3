import { describe, expect, it } from 'vitest';
import { settingsOf } from './agents.command.js';

describe('settingsOf', () => {
  it('reads each by its name on the wire', () => {
    expect(
      settingsOf(['enabled=true', 'auto-register-skills=off', 'max_skills=20', 'approval_mode=threshold', 'skill_search_threshold=0.7']),
    ).toMatchObject({
      settings: { enabled: true, autoRegisterSkills: false, maxSkills: 20, approvalMode: 'threshold', skillSearchThreshold: 0.7 },
      paths: ['enabled', 'auto_register_skills', 'max_skills', 'approval_mode', 'skill_search_threshold'].map(
        (key) => `procedural_memory_settings.${key}`,
      ),
    });
  });

  it.each([
    ['a setting that it does not know', 'maximum=2', /is no setting/],
    ['what names no value', 'enabled', /is no setting/],
    ['what every object has', 'constructor=1', /is no setting/],
    ['a value that is none', 'enabled=maybe', /enabled must be true or false/],
    ['a number that is none', 'max_skills=many', /max_skills must be a number/],
    ['no number', 'skill_search_threshold=', /must be a number/],
  ])('refuses %s', (_what, pair, message) => {
    expect(() => settingsOf([pair])).toThrow(message);
  });
});
