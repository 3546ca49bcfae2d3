import type { Fact } from '@etude/contracts/memory';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { ALL } from '@etude/domain/testing/memory-conformance-start';
import { chunksOf, documentOf, NEW_YEAR, SCOPE, storedFactOf as factOf } from '@etude/domain/testing/memory-records';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dyingStore, isSurvived } from '../../test/dying-store.js';
import { modelStore } from '../../test/model-store.js';
import type { RecordStore } from '../record-store.js';
import { mendDocuments } from './documents.js';
import { semanticLayer } from './semantic-layer.js';

const DAY_MS = 86_400_000;

const layerOver = (store: RecordStore) => semanticLayer({ store, embedder: new LexicalEmbedder(), clock: { now: () => NEW_YEAR } });
const told = (text: string, day: number): Fact =>
  factOf({ text, episodes: [], createdAt: NEW_YEAR + day * DAY_MS, ...(text.includes('limit') ? { subject: 'limit' } : {}) });

const TEXTS = [
  'The limit is 5',
  'The limit is 8',
  'the limits is 5!',
  'limit 13',
  'Ann likes tea',
  'ann liked tea',
  'Ann no longer likes tea',
];
const TELLINGS = fc.uniqueArray(fc.record({ text: fc.constantFrom(...TEXTS), day: fc.nat(5) }), {
  minLength: 1,
  maxLength: 8,
  selector: ({ text, day }) => `${text} ${day}`,
});

describe('a semantic layer that is killed', () => {
  it('ends in the same state as without a crash, and counts each write once', async () => {
    const drawn = fc.asyncProperty(TELLINGS, fc.array(fc.nat(4), { maxLength: 12 }), async (tellings, deaths) => {
      const calm = modelStore();
      const undisturbed = layerOver(calm);
      for (const { text, day } of tellings) await undisturbed.store(`${text} ${day}`, told(text, day));
      const { store, dieAfter } = dyingStore();
      const pending = [...deaths];
      for (const { text, day } of tellings) {
        const tell = () => layerOver(store).store(`${text} ${day}`, told(text, day));
        do dieAfter(pending.shift() ?? Number.POSITIVE_INFINITY);
        while (!(await isSurvived(tell)));
      }
      expect(await layerOver(store).list(ALL, 50)).toEqual(await undisturbed.list(ALL, 50));
      expect(await everyFact(store)).toEqual(await everyFact(calm));
    });
    await expect(fc.assert(drawn, { numRuns: 60 })).resolves.toBeUndefined();
  });

  it('applies a whole unit when the unit is repeated', async () => {
    const drawn = fc.asyncProperty(TELLINGS, fc.array(fc.nat(6), { maxLength: 8 }), async (tellings, deaths) => {
      const facts = tellings.map(({ text, day }) => told(text, day));
      const calm = modelStore();
      const undisturbed = layerOver(calm);
      await undisturbed.applyFacts('acme', 'u1', facts);
      const { store, dieAfter } = dyingStore();
      for (const death of deaths) {
        dieAfter(death);
        await isSurvived(() => layerOver(store).applyFacts('acme', 'u1', facts));
      }
      dieAfter(Number.POSITIVE_INFINITY);
      await layerOver(store).applyFacts('acme', 'u1', facts);
      expect([...(await layerOver(store).appliedAmong('acme', ['u1']))]).toEqual(['u1']);
      expect(await everyFact(store)).toEqual(await everyFact(calm));
    });
    await expect(fc.assert(drawn, { numRuns: 40 })).resolves.toBeUndefined();
  });

  it('keeps one whole edition of a document after a repeat or a repair', async () => {
    const drawn = fc.asyncProperty(fc.nat(12), fc.boolean(), async (death, isRepeated) => {
      const { store, dieAfter } = dyingStore();
      await layerOver(store).storeDocument(...editionOf(['a', 'b', 'c']));
      dieAfter(death);
      await isSurvived(() => layerOver(store).storeDocument(...editionOf(['a', 'd'])));
      dieAfter(Number.POSITIVE_INFINITY);
      // The document may count as whole only if every chunk is stored and no chunk of the old edition is left.
      const whole = await layerOver(store).wholeDocument(SCOPE, 'd1');
      const standing = (await store.find(ALL, 'semantic', { kinds: ['chunk'] }, { order: 'key', limit: 9 }))
        .map(({ text }) => text)
        .join('');
      expect(whole === null ? standing : whole.digest).toBe(standing);
      if (isRepeated) await layerOver(store).storeDocument(...editionOf(['a', 'd']));
      else await mendDocuments(store, 'acme');
      const [document] = await layerOver(store).documents(ALL, { limit: 5 });
      const chunks = await store.find(ALL, 'semantic', { kinds: ['chunk'] }, { order: 'key', limit: 50 });
      expect(chunks.map(({ text }) => text).join('')).toBe(document?.digest);
      expect(isRepeated ? document?.digest : 'ad').toBe('ad');
    });
    await expect(fc.assert(drawn, { numRuns: 40 })).resolves.toBeUndefined();
  });
});

async function everyFact(store: RecordStore): Promise<readonly Fact[]> {
  const records = await store.find(ALL, 'semantic', { kinds: ['fact'] }, { order: 'key', limit: 100 });
  return records.map(({ body }) => (JSON.parse(body) as { value: Fact }).value);
}

/** A document whose digest is its text. */
function editionOf(texts: readonly string[]) {
  const document = documentOf(texts, { digest: texts.join('') });
  return [document, chunksOf(document, texts)] as const;
}

it('embeds the next chunks of a document while it writes those before', async () => {
  const events: string[] = [];
  const inner = modelStore();
  const store: RecordStore = {
    ...inner,
    write: (tenant, changes) => (events.push(`write ${changes.length}`), inner.write(tenant, changes)),
  };
  const lexical = new LexicalEmbedder();
  const embedder = {
    profile: lexical.profile,
    embed: (texts: readonly string[]) => (events.push(`embed ${texts.length}`), lexical.embed(texts)),
  };
  const layer = semanticLayer({ store, embedder, clock: { now: () => NEW_YEAR } });
  await layer.storeDocument(...editionOf(Array.from({ length: 40 }, (_, i) => `chunk ${i}`)));
  expect(events.slice(0, 6)).toEqual(['embed 16', 'embed 16', 'write 16', 'embed 8', 'write 16', 'write 8']);
});
