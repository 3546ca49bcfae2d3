import { describe, expect, it } from 'vitest';
import type { Fact, Scope } from '@etude/contracts/memory';
import type { SemanticMemory } from '../src/ports/memory.js';
import type { MakeMemory } from './memory-conformance-start.js';
import { isReadBy, OWNERS, READERS, SCOPES_WITHOUT_TENANT, start } from './memory-conformance-start.js';
import { factId } from '../src/facts/fact-keys.js';
import { NEW_YEAR, factOf as recordOf, SCOPE } from './memory-records.js';

const ALL = { tenant: 'acme', agent: null };

/** What every SemanticMemory keeps, whatever it is stored in. */
export function semanticMemoryConformance(make: MakeMemory<SemanticMemory>): void {
  describe('as a SemanticMemory', () => {
    it('applies a unit once', async () => {
      const memory = await start(make);
      expect(await memory.wasApplied('acme', 'u1')).toBe(false);
      expect(await memory.applyFacts('acme', 'u1', [factOf()])).toEqual({ added: 1, reinforced: 0 });
      expect(await memory.applyFacts('acme', 'u1', [factOf(), factOf({ text: DATES })])).toEqual({ added: 0, reinforced: 0 });
      expect(await memory.wasApplied('acme', 'u1')).toBe(true);
      expect(await memory.wasApplied('beta', 'u1')).toBe(false);
      expect(await memory.list(ALL, 10)).toEqual([factOf()]);
    });

    it('reinforces a fact that is known', async () => {
      const memory = await start(make);
      await memory.applyFacts('acme', 'u1', [factOf()]);
      const again = factOf({ episodes: ['e1', 'e2', 'e3'], confidence: 0.9, createdAt: NEW_YEAR + 5 });
      expect(await memory.applyFacts('acme', 'u2', [again, factOf({ text: 'Another one.' })])).toEqual({
        added: 1,
        reinforced: 1,
      });
      const known = (await memory.list(ALL, 10)).find(({ text }) => text === factOf().text);
      expect(known).toEqual(factOf({ episodes: ['e1', 'e2', 'e3'], support: 3, confidence: 0.9, updatedAt: NEW_YEAR + 5 }));
      const [hit] = await memory.search(ALL, { text: known?.text ?? '', limit: 1 });
      expect(hit).toMatchObject({ sources: ['e1', 'e2', 'e3'] });
    });

    it('applies nothing of a unit that holds a fact of another tenant', async () => {
      const memory = await start(make);
      const foreign = factOf({ scope: { ...SCOPE, tenant: 'beta' } });
      await expect(memory.applyFacts('acme', 'u1', [factOf(), foreign])).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
      expect(await memory.list(ALL, 10)).toEqual([]);
      expect(await memory.wasApplied('acme', 'u1')).toBe(false);
    });

    it('finds facts by their words', async () => {
      const memory = await start(make);
      await memory.applyFacts('acme', 'u1', [factOf(), factOf({ text: DATES, category: 'format' })]);
      const hits = await memory.search(ALL, { text: 'how are dates written', limit: 5, explain: true });
      expect(hits[0]).toMatchObject({
        id: factOf({ text: DATES }).id,
        layer: 'semantic',
        kind: 'fact',
        title: 'format',
        text: DATES,
        agent: 'coder',
        sources: ['e1'],
      });
      expect(hits[0]?.explanation?.score).toBe(hits[0]?.score);
      expect(await memory.search(ALL, { text: 'walrus', limit: 5 })).toEqual([]);
    });

    it('prefers a fact of more confidence', async () => {
      const memory = await start(make);
      await memory.applyFacts('acme', 'u1', [
        factOf({ text: 'Walnut is a word of maps.', confidence: 0.1 }),
        factOf({ text: 'Walnut is a word of trees.', confidence: 1 }),
      ]);
      const [best] = await memory.search(ALL, { text: 'walnut', limit: 2 });
      expect(best?.text).toBe('Walnut is a word of trees.');
    });

    it('refuses to work without a tenant', async () => {
      const memory = await start(make);
      for (const scope of SCOPES_WITHOUT_TENANT) {
        await expect(memory.search(scope, { text: 'even', limit: 1 })).rejects.toMatchObject({ code: 'TENANT_MISSING' });
        await expect(memory.list(scope, 1)).rejects.toMatchObject({ code: 'TENANT_MISSING' });
      }
      await expect(memory.applyFacts('', 'u', [])).rejects.toMatchObject({ code: 'TENANT_MISSING' });
      await expect(memory.wasApplied('', 'u')).rejects.toMatchObject({ code: 'TENANT_MISSING' });
    });

    it('finds every fact of a tenant or an agent, and none of another', async () => {
      const memory = await start(make);
      for (const owner of OWNERS) {
        expect(await memory.applyFacts(owner.tenant, `u-${owner.agent}`, factsOf(owner))).toEqual({ added: WORDS.length, reinforced: 0 });
      }
      for (const reader of READERS) {
        const readable = OWNERS.filter((owner) => isReadBy(owner, reader));
        const own = readable.flatMap((owner) => WORDS.map((word) => keyOf(owner, word))).toSorted();
        const hits = await memory.search(reader, { text: 'input ends', limit: 50 });
        expect(hits.map(({ title }) => title).toSorted()).toEqual(own);
        expect((await memory.list(reader, 50)).map(({ category }) => category).toSorted()).toEqual(own);
      }
    });
  });
}

const keyOf = (owner: Scope, word: string) => `${owner.tenant}-${owner.agent}-${word}`;
/** Words instead of numbers, so that no fact is a newer value of another. */
const WORDS = ['walnut', 'pepper', 'granite'];
const factsOf = (owner: Scope) =>
  WORDS.map((word) => factOf({ text: `Input ends here: ${word}.`, category: keyOf(owner, word), scope: owner }));
const DATES = 'Dates are written day first.';

/** With the id that its owner and text give. */
export function factOf(changes: Partial<Fact> = {}): Fact {
  const fact = recordOf(changes);
  return { ...fact, id: factId(fact.scope, fact.text) };
}
