import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { archiveSkill } from '@etude/domain/skills/life/decisions';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { decideAtOnce } from '@etude/domain/testing/decisions-property';
import { NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { moveOf, storeAt } from '@etude/domain/testing/skill-lives';
import { expect, it } from 'vitest';
import { recordUpkeep } from '../src/upkeep/record-upkeep.js';
import type { RecordStore } from '../src/record-store.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { twoOnOneFile, twoOnQdrant } from './two-registries.js';

const TIMEOUT_MS = 240_000;

/** Lets somebody else write behind what it read, and is killed behind what it writes. */
function killedWriter(store: RecordStore, meanwhile: () => Promise<unknown>): RecordStore {
  const write: RecordStore['write'] = async (...args) => {
    await meanwhile();
    await store.write(...args);
    throw new Error('killed');
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'write') return write;
      const found: unknown = Reflect.get(target, name, target);
      return typeof found === 'function' ? (found.bind(target) as unknown) : found;
    },
  });
}

it('leaves one version active, and what is in use able to run, in a SQLite file that two have open', { timeout: TIMEOUT_MS }, async () => {
  const { inUse, refused } = await decideAtOnce(twoOnOneFile, { numRuns: 60 });
  console.info(`${inUse} callers in use were looked at in SQLite, ${refused} decisions were refused`);
  expect(inUse).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(10);
});

describeOnQdrant({ name: 'skills that call each other' }, (server) => {
  it('leaves one version active, and what is in use able to run, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const { inUse } = await decideAtOnce(() => twoOnQdrant(server), { numRuns: 6, turnsMax: 4 });
    expect(inUse).toBeGreaterThan(0);
  });

  it('is reconciled where a writer was killed behind its writes', { timeout: TIMEOUT_MS }, async () => {
    const { store, close } = await openOnQdrant(server, LEXICAL_MODEL)();
    try {
      const registry = registryOver(store);
      const base = await storeAt(registry, skillOf({ name: 'base', status: 'active' }));
      const top = await storeAt(registry, skillOf({ name: 'top', status: 'verified', dependencies: [dependencyOn(base)] }));
      const killed = killedWriter(store, () => archiveSkill(registry, [base], { by: 'ann', reason: '', at: NEW_YEAR + 1 }));
      await expect(registryOver(killed).move([moveOf(top, 'active')])).rejects.toThrow('killed');
      const upkeep = recordUpkeep({ store, embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR + 20 } });
      const statusOfTop = async () => (await registry.versions(SCOPE, 'top')).map(({ status }) => status);
      expect(await statusOfTop()).toEqual(['active']);
      expect((await upkeep.reconcile()).repaired).toEqual([expect.stringContaining('skill top@1')]);
      expect(await statusOfTop()).toEqual(['deprecated']);
      expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
    } finally {
      await close();
    }
  });
});
