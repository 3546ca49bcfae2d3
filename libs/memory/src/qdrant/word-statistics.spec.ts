import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QdrantServer } from './qdrant-server.js';
import { TenantPoints } from './tenant-points.js';
import { countedIn, surplusOf, WordedCounts } from './point-vectors.js';

const server = new QdrantServer({ url: 'http://127.0.0.1:9', timeoutMs: 1_000 });
const [acme, beta] = ['acme', 'beta'].map((tenant) => TenantPoints.of(server, tenant)) as [TenantPoints, TenantPoints];
/** What a server weighs a word of `df` among `all` records, in single precision as it answers. */
const weight = (all: number, df: number) => Math.fround(Math.log((all + 1) / (df + 0.5)));

describe('word statistics', () => {
  it('tell how many records of a tenant a server counts, and what a word weighs among them', () => {
    const counts = fc.tuple(fc.integer({ min: 1, max: 200_000 }), fc.nat(1_000_000), fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(counts, ([own, others, part]) => {
        const all = own + others + 1;
        const df = Math.max(1, Math.floor(own * part));
        const [anchor, presence] = [weight(all, 1), weight(all, own)];
        const counted = countedIn(anchor, presence);
        expect(Math.abs(counted - own)).toBeLessThanOrEqual(1 + own * 1e-5);
        const among = Math.log((own + 1) / (df + 0.5));
        expect(weight(all, df) - surplusOf(anchor, counted)).toBeCloseTo(among, 4);
      }),
    );
  });

  it('are kept of a tenant with many records, for ten seconds', () => {
    let now = 0;
    const counts = new WordedCounts(() => now);
    counts.keep(acme, 'facts', 1_000);
    counts.keep(beta, 'facts', 999);
    expect([counts.kept(acme, 'facts'), counts.kept(acme, 'other'), counts.kept(beta, 'facts')]).toEqual([1_000, null, null]);
    now = 10_000;
    expect(counts.kept(acme, 'facts')).toBeNull();
  });
});
