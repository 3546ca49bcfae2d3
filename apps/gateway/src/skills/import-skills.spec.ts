import { EtudeError } from '@etude/contracts/errors';
import { skillOf } from '@etude/domain/testing/memory-records';
import { expect, it } from 'vitest';
import { storeImport } from './import-skills.js';

const full = new EtudeError('FAILED_PRECONDITION', 'coder has as many skills as it may have', { field: 'skill.name' });

/** Room for so many. */
function shelf(places: number) {
  const stored: string[] = [];
  return async (name: string) => {
    if (stored.length === places) throw full;
    stored.push(name);
    return skillOf({ name });
  };
}

it('says what was stored before the one that is refused', async () => {
  await expect(storeImport(['a', 'b', 'c'], shelf(2))).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
    message:
      'coder has as many skills as it may have; of 3 skills of this import 2 were stored before: a@1, b@1. The same import again finds them.',
    details: { field: 'skill.name' },
  });
});

it('leaves a refusal as it is where nothing was stored', async () => {
  await expect(storeImport(['a', 'b'], shelf(0))).rejects.toBe(full);
  expect((await storeImport(['a', 'b'], shelf(2))).map(({ name }) => name)).toEqual(['a', 'b']);
});
