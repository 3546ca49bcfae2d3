import { expect } from 'vitest';
import type { ItOfStore } from './record-store-conformance.js';
import { ACME, collect, insert, keysFound, recordOf } from './record-store-samples.js';

/** Tests of the results of `find` and `each`, and of their order. */
export function recordStoreFindingConformance(it: ItOfStore): void {
  it('pages by key in the order of code points', async ({ store }) => {
    const keys = ['B', 'a', 'a b', 'b', 'ä', '\uFF5E', '\u{1F600}'];
    const changes = keys.toReversed().map((key) => insert(recordOf({ key })));
    await store.write('acme', changes);
    const seen: string[] = [];
    for (;;) {
      const afterKey = seen.at(-1);
      const page = await store.find(
        ACME,
        'semantic',
        { kinds: ['fact'] },
        { order: 'key', limit: 2, ...(afterKey === undefined ? {} : { afterKey }) },
      );
      if (page.length === 0) break;
      seen.push(...page.map(({ key }) => key));
    }
    expect(seen).toEqual(keys);
  });

  it('looks up by fields exactly, all of them, any value of each', async ({ store }) => {
    const fields = {
      one: { name: 'sum', status: 'active' },
      two: { name: 'sum', status: 'archived' },
      three: { name: 'Sum', fingerprint: ['f1', 'f2'] },
    };
    const changes = Object.entries(fields).map(([key, values]) => insert(recordOf({ key, fields: values })));
    await store.write('acme', changes);
    expect(await keysFound(store, { where: { name: 'sum' } })).toEqual(['one', 'two']);
    expect(await keysFound(store, { where: { name: 'sum', status: 'active' } })).toEqual(['one']);
    expect(await keysFound(store, { where: { status: ['active', 'archived'] } })).toEqual(['one', 'two']);
    expect(await keysFound(store, { where: { fingerprint: 'f2' } })).toEqual(['three']);
    expect(await keysFound(store, { where: { fingerprint: ['f1', 'f2'] } })).toEqual(['three']);
    expect(await keysFound(store, { where: { status: [] } })).toEqual([]);
    expect(await keysFound(store, { where: {} })).toHaveLength(3);
    for (const value of ['su%', '*', 'sum*', '{"$ne":""}', "' OR 1=1 --", '', 'sum ', 'SUM']) {
      expect(await keysFound(store, { where: { name: value } })).toEqual([]);
    }
  });

  it('follows fields that an update changed', async ({ store }) => {
    await store.write('acme', [insert(recordOf({ fields: { status: 'candidate', fingerprint: ['f1', 'f2'] } }))]);
    await store.write('acme', [
      { do: 'update', record: recordOf({ fields: { status: 'active', fingerprint: ['f2', 'f3'] } }), revision: 1 },
    ]);
    const found = async (where: object) => (await keysFound(store, { where })).length;
    expect([await found({ status: 'candidate' }), await found({ fingerprint: 'f1' })]).toEqual([0, 0]);
    expect([await found({ status: 'active' }), await found({ fingerprint: 'f2' }), await found({ fingerprint: 'f3' })]).toEqual([1, 1, 1]);
  });

  it('returns every record once across pages', async ({ store }) => {
    const many = Array.from({ length: 2_500 }, (_, i) => insert(recordOf({ key: `k${i}`, createdAt: i % 3, shown: i % 2 === 0 })));
    await store.write('acme', many);
    const all = await collect(store.each({ tenant: 'acme' }, 'semantic', {}));
    expect(new Set(all.map(({ key }) => key)).size).toBe(2_500);
    expect(all).toHaveLength(2_500);
    expect(await store.count({ tenant: 'acme' }, 'semantic', { shown: true })).toBe(1_250);
    expect(await store.find(ACME, 'semantic', {}, { order: 'newest', limit: 5_000 })).toHaveLength(2_500);
    expect(
      await store.load(
        ACME,
        'semantic',
        'fact',
        all.map(({ key }) => key),
      ),
    ).toHaveLength(2_500);
    expect(await store.remove({ tenant: 'acme' }, 'semantic', {})).toBe(2_500);
    expect(await store.count({ tenant: 'acme' }, 'semantic', {})).toBe(0);
  });
}
