import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { archiveSkill } from '@etude/domain/skills/life/decisions';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { storeAt } from '@etude/domain/testing/skill-lives';
import { expect, it } from 'vitest';
import { storeWithOthers } from '../../test/store-with-others.js';
import { memoryOver } from '../open-memory.js';

const clock = { now: () => NEW_YEAR };
const BY = { by: 'ann', reason: '', at: NEW_YEAR + 100 };

function registryWithOthers() {
  const { store, meanwhile } = storeWithOthers();
  const { procedural } = memoryOver(store, { embedder: new LexicalEmbedder(), clock });
  return { procedural, meanwhile };
}

it('keeps the version in use whose successor loses what it calls at the same time', async () => {
  const { procedural, meanwhile } = registryWithOthers();
  const base = await storeAt(procedural, skillOf({ name: 'base', status: 'active' }));
  const first = await storeAt(procedural, skillOf({ name: 'top', status: 'active' }));
  const second = await storeAt(procedural, skillOf({ name: 'top', status: 'verified', dependencies: [dependencyOn(base)] }));
  meanwhile(() => archiveSkill(procedural, [base], BY));
  const moves = [
    { ...BY, key: keyOf(second), to: 'active' },
    { ...BY, key: keyOf(first), to: 'deprecated', reason: 'replaced by version 2' },
  ] as const;
  await expect(procedural.move(moves)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  expect((await procedural.versions(SCOPE, 'top')).map(({ version, status }) => [version, status])).toEqual([
    [2, 'deprecated'],
    [1, 'active'],
  ]);
});

it('takes all of a call out of use again that lost what they call', async () => {
  const { procedural, meanwhile } = registryWithOthers();
  const base = await storeAt(procedural, skillOf({ name: 'base', status: 'active' }));
  const callers = [];
  for (const name of ['one', 'two'])
    callers.push(await storeAt(procedural, skillOf({ name, status: 'verified', dependencies: [dependencyOn(base)] })));
  meanwhile(() => archiveSkill(procedural, [base], BY));
  await expect(procedural.move(callers.map((skill) => ({ ...BY, key: keyOf(skill), to: 'active' })))).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
  });
  const statuses = await Promise.all(
    ['one', 'two'].map(async (name) => (await procedural.versions(SCOPE, name)).map(({ status }) => status)),
  );
  expect(statuses).toEqual([['deprecated'], ['deprecated']]);
});
