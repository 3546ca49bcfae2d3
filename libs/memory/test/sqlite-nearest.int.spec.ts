import { expect, it, onTestFinished } from 'vitest';
import type { Change } from '../src/record-store.js';
import { ACME, BETA, insert, numbers, recordOf, vectorOf } from './record-store-samples.js';
import { temporaryStore } from './temporary-store.js';

const DIMENSION = 96;
const RECORDS = 3_000;
const PLACES = 10;

async function opened() {
  const made = await temporaryStore({ model: { name: 'many', dimension: DIMENSION } });
  onTestFinished(() => made.close());
  return made.store;
}

/** Directions around 20 topics. Sparse directions have few nonzero numbers, like vectors of hashed words. */
function directions(count: number, isSparse: boolean): Float32Array[] {
  const next = numbers(7);
  const one = () => Array.from({ length: DIMENSION }, () => (isSparse && next() > -0.4 ? 0 : next()));
  const topics = Array.from({ length: 20 }, one);
  return Array.from({ length: count }, (_, i) => {
    const own = one();
    return vectorOf(Object.fromEntries((topics[i % 20] ?? []).map((value, axis) => [axis, value + (own[axis] ?? 0)])), DIMENSION);
  });
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
const recordAt = (i: number, part = {}) => recordOf({ key: `k${i}`, createdAt: i, ...part });

for (const isSparse of [false, true]) {
  it(
    `finds what comparing all ${isSparse ? 'sparse' : 'full'} vectors finds, for the tenant, agent and kind that are asked for`,
    { timeout: 120_000 },
    async () => {
      const store = await opened();
      const all = directions(RECORDS + 40, isSparse);
      const [vectors, asked] = [all.slice(0, RECORDS), all.slice(RECORDS)];
      const kinds = ['fact', 'summary'] as const;
      const changes = (tenant: string, shift: number): Change[] =>
        vectors.map((_, i) =>
          insert(recordAt(i, { kind: kinds[i % 2] ?? 'fact', scope: { tenant, agent: i % 3 === 0 ? 'tester' : 'coder', user: null } }), {
            text: '',
            vector: vectors[(i + shift) % RECORDS] ?? null,
          }),
        );
      await store.write('acme', changes('acme', 0));
      await store.write('beta', changes('beta', 1_000));
      let right = 0;
      for (const [q, vector] of asked.entries()) {
        const [scope, shift] = q % 2 === 0 ? [{ ...ACME, agent: 'coder' }, 0] : [{ ...BETA, agent: 'coder' }, 1_000];
        const found = await store.search(scope, 'semantic', { vector, text: '', kinds: ['fact'], limit: PLACES });
        const cosines = vectors.map((_, i) => dot(vectors[(i + shift) % RECORDS] ?? vector, vector));
        const open = cosines.flatMap((cosine, i) => (i % 3 !== 0 && i % 2 === 0 ? [{ key: `k${i}`, cosine }] : []));
        const best = open.toSorted((a, b) => b.cosine - a.cosine).slice(0, PLACES);
        right += best.filter(({ key }) => found.some((one) => one.key === key)).length;
        for (const { key, cosine } of found) expect(cosine).toBeCloseTo(cosines[Number(key.slice(1))] ?? 2, 4);
      }
      expect(right / (asked.length * PLACES)).toBeGreaterThanOrEqual(0.99);
    },
  );
}
