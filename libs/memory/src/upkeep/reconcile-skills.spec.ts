import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { moveOf, storeAt } from '@etude/domain/testing/skill-lives';
import { expect, it } from 'vitest';
import { dyingStore } from '../../test/dying-store.js';
import { memoryOver } from '../open-memory.js';

const BY = { by: 'ann', reason: '', at: NEW_YEAR + 100 };

function opened() {
  const { store, dieAfter } = dyingStore();
  const memory = memoryOver(store, { embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR + 1_000 } });
  const statuses = async () => (await memory.procedural.versions(SCOPE, 'top')).map(({ version, status }) => `top@${version} ${status}`);
  return { ...memory, statuses, dieAfter };
}

it('deactivates one of two active versions that a killed writer left', async () => {
  const { procedural, upkeep, statuses, dieAfter } = opened();
  const first = await storeAt(procedural, skillOf({ name: 'top', status: 'active' }));
  const second = await storeAt(procedural, skillOf({ name: 'top', status: 'verified', code: 'def top(x):\n    return 2 * x\n' }));
  dieAfter(1);
  const moves = [{ ...BY, key: keyOf(second), to: 'active' } as const, moveOf(first, 'deprecated', BY)];
  await expect(procedural.move(moves)).rejects.toThrow('killed');
  dieAfter(Infinity);
  expect(await statuses()).toEqual(['top@2 active', 'top@1 active']);
  expect((await upkeep.reconcile()).repaired).toEqual([expect.stringContaining('several versions of skill top@')]);
  expect(await statuses()).toEqual(['top@2 active', 'top@1 deprecated']);
  expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
});

it('reports an active skill whose callee is a candidate again', async () => {
  const { procedural, upkeep, statuses } = opened();
  const base = await storeAt(procedural, skillOf({ name: 'base', status: 'deprecated' }));
  await storeAt(procedural, skillOf({ name: 'top', status: 'active', dependencies: [dependencyOn(base)] }));
  await procedural.move([moveOf(base, 'candidate', { proof: null })]);
  expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [expect.stringContaining("is active and can't run")] });
  expect(await statuses()).toEqual(['top@1 active']);
});
