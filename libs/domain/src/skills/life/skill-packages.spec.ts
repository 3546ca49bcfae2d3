import { describe, expect, it } from 'vitest';
import { templatesOf } from './skill-packages.js';

const templates = {
  default: ['attrs==25.1.0'],
  everything: ['numpy==2.3.1', 'pandas==2.3.0', 'Typing_Extensions==4.14.0'],
  science: ['numpy==2.3.1'],
};

describe('the sandbox for packages', () => {
  it('is the default kind where no package is needed or it has them', () => {
    expect(templatesOf({})([])).toBeUndefined();
    expect(templatesOf(templates)(['attrs==25.1.0'])).toBeUndefined();
  });

  it('is the kind with the fewest packages that has them all', () => {
    expect(templatesOf(templates)(['numpy==2.3.1'])).toBe('science');
    expect(templatesOf(templates)(['numpy==2.3.1', 'pandas==2.3.0'])).toBe('everything');
  });

  it('ignores the spelling of a name', () => {
    expect(templatesOf(templates)(['typing-extensions==4.14.0'])).toBe('everything');
  });

  it.each([[['numpy==2.3.2']], [['numpy==2.3.1', 'attrs==25.1.0']], [['scipy==1.0']]])(
    'is refused for %j, with the allowed packages',
    (packages) => {
      expect(() => templatesOf(templates)(packages)).toThrow(
        expect.objectContaining({ code: 'FAILED_PRECONDITION', message: expect.stringContaining('numpy==2.3.1 (science)') }),
      );
    },
  );

  it('is refused where only the standard library exists', () => {
    expect(() => templatesOf({ default: [] })(['numpy==2.3.1'])).toThrow(/only the standard library/);
  });
});
