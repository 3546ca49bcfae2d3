import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { folderOf, placeOf } from './skill-folder.js';

const skillName = fc.stringMatching(/^[a-z][a-z0-9_]{0,79}$/);
/** As an export makes one of it. */
const formatNameOf = (name: string) => name.replaceAll(/_+/g, '-').slice(0, 64).replace(/-+$/, '');

describe('the URI of a skill', () => {
  it('leads back to the skill, whatever its name', () => {
    fc.assert(
      fc.property(skillName, (name) => {
        const folder = folderOf(name, formatNameOf(name));
        expect(placeOf(`skill://${folder}/SKILL.md`)).toEqual({ skill: name, folder, path: ['SKILL.md'] });
      }),
      { numRuns: 2_000 },
    );
  });

  it('is of one skill only', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.stringMatching(/^a[b_]{0,6}$/), { minLength: 2 }), (alike) => {
        expect(new Set(alike.map((name) => folderOf(name, formatNameOf(name)))).size).toBe(alike.length);
      }),
      { numRuns: 2_000 },
    );
  });

  it('names a file by its decoded path, without a way up', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const segment of placeOf(`skill://add-up/${text}`)?.path ?? []) {
          expect(['', '.', '..']).not.toContain(segment);
          expect(segment).not.toMatch(/[/\\\0]/);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
