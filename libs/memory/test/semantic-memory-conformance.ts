import type { Fact } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import { describe, expect } from 'vitest';
import { documentLayerConformance } from './document-layer-conformance.js';
import { ALL, type MakeMemory, requireRefusals, SCOPES_WITHOUT_TENANT, withMemory } from '@etude/domain/testing/memory-conformance-start';
import { NEW_YEAR, SCOPE, storedFactOf as factOf } from '@etude/domain/testing/memory-records';
import type { SemanticLayer } from '../src/memory.js';

const DAY_MS = 86_400_000;

/** The promises of every semantic memory, whatever store it uses. */
export function semanticMemoryConformance(make: MakeMemory<SemanticLayer>): void {
  describe('as a semantic memory', () => {
    unitsConformance(make);
    factsConformance(make);
    changesConformance(make);
    documentLayerConformance(make);
  });
}

function unitsConformance(make: MakeMemory<SemanticLayer>): void {
  const it = withMemory(make);
  it('applies a unit once', async ({ memory }) => {
    expect([...(await memory.appliedAmong('acme', ['u1', 'u9']))]).toEqual([]);
    expect(await memory.applyFacts('acme', 'u1', [factOf()])).toEqual({ added: 1, reinforced: 0 });
    expect(await memory.applyFacts('acme', 'u1', [factOf(), factOf({ text: DATES })])).toEqual({ added: 0, reinforced: 0 });
    expect([...(await memory.appliedAmong('acme', ['u1', 'u9']))]).toEqual(['u1']);
    expect([...(await memory.appliedAmong('beta', ['u1', 'u9']))]).toEqual([]);
    expect(await memory.list(ALL, 10)).toEqual([factOf()]);
  });

  it('reinforces a fact that is known', async ({ memory }) => {
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

  it('applies nothing of a unit with a fact of another tenant', async ({ memory }) => {
    const foreign = factOf({ scope: { ...SCOPE, tenant: 'beta' } });
    await expect(memory.applyFacts('acme', 'u1', [factOf(), foreign])).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(await memory.list(ALL, 10)).toEqual([]);
    expect([...(await memory.appliedAmong('acme', ['u1', 'u9']))]).toEqual([]);
  });

  it('finds facts by their words', async ({ memory }) => {
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

  it('finds the current fact about a subject, of exactly its owner', async ({ memory }) => {
    const facts = ['old', 'new'].map((text, at) =>
      factOf({ text, subject: 'dates', category: 'finding', digest: 'd1', createdAt: NEW_YEAR + at }),
    );
    const anns = factOf({ text: 'hers', subject: 'dates', category: 'finding', scope: { ...SCOPE, user: 'ann' } });
    for (const [at, fact] of [...facts, anns].entries()) await memory.applyFacts('acme', `u${at}`, [fact]);
    expect(await memory.about(SCOPE, 'finding', 'dates')).toMatchObject({ text: 'new', digest: 'd1' });
    await memory.applyFacts('acme', 'u9', [{ ...(facts[1] ?? anns), digest: 'd2', createdAt: NEW_YEAR + 5 }]);
    expect(await memory.about(SCOPE, 'finding', 'dates')).toMatchObject({ text: 'new', digest: 'd2' });
    expect(await memory.about(anns.scope, 'finding', 'dates')).toMatchObject({ text: 'hers' });
    for (const [scope, category, subject] of [
      [{ ...SCOPE, user: 'bob' }, 'finding', 'dates'],
      [{ ...SCOPE, tenant: 'beta' }, 'finding', 'dates'],
      [SCOPE, 'general', 'dates'],
      [SCOPE, 'finding', 'times'],
    ] as const)
      expect(await memory.about(scope, category, subject)).toBeNull();
  });

  it('refuses to work without a tenant', async ({ memory }) => {
    for (const scope of SCOPES_WITHOUT_TENANT) {
      await requireRefusals(memory.search(scope, { text: 'even', limit: 1 }), memory.list(scope, 1));
    }
    await requireRefusals(memory.applyFacts('', 'u', []), memory.appliedAmong('', ['u']));
  });
}

const DATES = 'Dates are written day first.';

const told = (text: string, day = 0, changes: Partial<Fact> = {}) =>
  factOf({ text, episodes: [], createdAt: NEW_YEAR + day * DAY_MS, ...changes });
const limitOf = (limit: number, day = 0, changes: Partial<Fact> = {}) =>
  told(`The limit is ${limit}`, day, { subject: 'limit', ...changes });
const textsOf = (facts: readonly { text: string }[]) => facts.map(({ text }) => text);

function factsConformance(make: MakeMemory<SemanticLayer>): void {
  const it = withMemory(make);
  it('stores each write once', async ({ memory }) => {
    expect(await memory.store('w1', told('Ann likes tea.'))).toMatchObject({ outcome: 'added', replaced: [], fact: { support: 1 } });
    expect(await memory.store('w1', told('Ann likes tea.'))).toMatchObject({ outcome: 'unchanged', fact: { support: 1 } });
    expect(await memory.store('w2', told(' Ann likes tea.\n'))).toMatchObject({ outcome: 'reinforced', fact: { support: 2 } });
    expect(await memory.list(ALL, 10)).toMatchObject([{ text: 'Ann likes tea.', support: 2 }]);
  });

  it('keeps facts apart that differ in a letter, a name, a number or a negation', async ({ memory }) => {
    const texts = [
      'Ann met Bob',
      'ann met Bob',
      'Ann met Bob.',
      'The staging deploy token is kqzvtkpwmnbx',
      'The staging deploy token is kqzvtkpwmnby',
      'The handler calls getUser',
      'The handler calls getuser',
      'The handler calls getUsers',
      'Ann met Tom',
      'Step 1 is long',
      'Step 2 is long',
      'Bob can ski',
      'Bob can not ski',
      '他喜欢蓝色',
      '他喜欢绿色',
    ];
    for (const [at, text] of texts.entries()) expect(await memory.store(`w${at}`, told(text))).toMatchObject({ outcome: 'added' });
    expect(textsOf(await memory.list(ALL, 20)).toSorted()).toEqual(texts.toSorted());
  });

  it('supersedes a fact of the same subject and keeps its history', async ({ memory }) => {
    const berlin = await memory.store('w1', told('Ann lives in Berlin', 0, { subject: 'home' }));
    const munich = await memory.store('w2', told('Ann moved to Munich', 5, { subject: 'home' }));
    expect(munich).toMatchObject({ outcome: 'superseded', replaced: [berlin.fact.id] });
    expect(textsOf(await memory.list(ALL, 10))).toEqual(['Ann moved to Munich']);
    expect(textsOf(await memory.search(ALL, { text: 'where does Ann live: Berlin?', limit: 5 }))).toEqual(['Ann moved to Munich']);
    expect(await memory.get(ALL, berlin.fact.id)).toMatchObject({ supersededBy: munich.fact.id, validTo: NEW_YEAR + 5 * DAY_MS });
    for (const { fact } of [berlin, munich]) {
      expect(textsOf(await memory.history(ALL, fact.id))).toEqual(['Ann moved to Munich', 'Ann lives in Berlin']);
    }
    expect(await memory.history(ALL, 'none')).toEqual([]);
  });

  it('puts a fact older than the known one into the history', async ({ memory }) => {
    const now = await memory.store('w1', limitOf(8, 9));
    const old = await memory.store('w2', limitOf(5, 3));
    expect(old).toMatchObject({ outcome: 'added', replaced: [], fact: { supersededBy: now.fact.id } });
    expect(textsOf(await memory.list(ALL, 10))).toEqual(['The limit is 8']);
    expect(textsOf(await memory.history(ALL, now.fact.id))).toEqual(['The limit is 8', 'The limit is 5']);
    expect(await memory.store('w3', limitOf(5, 4))).toMatchObject({ outcome: 'reinforced', fact: { support: 2 } });
  });

  it('stores a returning value as a new record', async ({ memory }) => {
    for (const [day, limit] of [5, 8, 5, 8].entries()) await memory.store(`w${day}`, limitOf(limit, day));
    const [current] = await memory.list(ALL, 10);
    expect(current).toMatchObject({ text: 'The limit is 8', createdAt: NEW_YEAR + 3 * DAY_MS });
    expect(textsOf(await memory.history(ALL, current?.id ?? ''))).toEqual([8, 5, 8, 5].map((limit) => `The limit is ${limit}`));
  });

  it('leaves the facts of other owners alone', async ({ memory }) => {
    const owners = [
      SCOPE,
      { ...SCOPE, user: 'ann' },
      { ...SCOPE, user: 'bob' },
      { ...SCOPE, agent: 'tester' },
      { ...SCOPE, tenant: 'beta' },
    ];
    for (const [at, scope] of owners.entries()) {
      await memory.store(`a${at}`, limitOf(5, 0, { scope }));
      expect(await memory.store(`b${at}`, limitOf(8, 1, { scope }))).toMatchObject({ outcome: 'superseded' });
    }
    expect(textsOf(await memory.list(ALL, 10))).toEqual(Array.from({ length: 4 }, () => 'The limit is 8'));
  });

  it('ends with one current fact for any order and repetition of writes', { timeout: 240_000 }, async () => {
    const telling = fc.record({ limit: fc.constantFrom(5, 8, 13), day: fc.nat(6), copy: fc.nat(1) });
    await expect(
      fc.assert(
        fc.asyncProperty(fc.array(telling, { minLength: 1, maxLength: 12 }), async (tellings) => endsInOneTruth(make, tellings)),
        { numRuns: 4 },
      ),
    ).resolves.toBeUndefined();
  });
}

/** Makes all writes at once, twice. One newest fact is then current, and each write counts once. */
async function endsInOneTruth(make: MakeMemory<SemanticLayer>, tellings: readonly { limit: number; day: number; copy: number }[]) {
  const made = await make();
  try {
    const write = (telling: (typeof tellings)[number]) => made.memory.store(JSON.stringify(telling), limitOf(telling.limit, telling.day));
    await Promise.all([...tellings, ...tellings].map(write));
    const newest = Math.max(...tellings.map(({ day }) => day));
    const current = await made.memory.list(ALL, 50);
    expect(current).toHaveLength(1);
    expect(tellings.filter(({ day }) => day === newest).map(({ limit }) => `The limit is ${limit}`)).toContain(current[0]?.text);
    const all = await made.memory.history(ALL, current[0]?.id ?? '');
    const writes = new Set(tellings.map((telling) => JSON.stringify(telling))).size;
    expect(all.reduce((sum, { support }) => sum + support, 0)).toBe(writes);
  } finally {
    await made.close?.();
  }
}

function changesConformance(make: MakeMemory<SemanticLayer>): void {
  const it = withMemory(make);
  it('changes text and confidence under the same id', async ({ memory }) => {
    const { fact } = await memory.store('w1', told('Ann likes tea'));
    expect(await memory.update(ALL, fact.id, { text: 'Ann collects stamps', confidence: 0.4 })).toMatchObject({
      id: fact.id,
      confidence: 0.4,
    });
    expect(await memory.search(ALL, { text: 'stamps', limit: 5 })).toMatchObject([{ id: fact.id, text: 'Ann collects stamps' }]);
    const learned = await memory.store('w0', factOf({ text: 'Bob likes coffee', source: 'experience', episodes: ['e1'] }));
    expect(await memory.update(ALL, learned.fact.id, { confidence: 0.5 })).toMatchObject({ source: 'experience' });
    expect(await memory.update(ALL, learned.fact.id, { text: 'Bob likes cocoa' })).toMatchObject({ source: 'told' });
    const [reworded] = await memory.search(ALL, { text: 'cocoa', limit: 5 });
    expect(reworded?.sources).toEqual(['e1', `facts/${learned.fact.id}`]);
    expect(await memory.search(ALL, { text: 'tea', limit: 5 })).toEqual([]);
    const tea = await memory.store('w2', told('Ann likes tea', 1));
    expect(tea).toMatchObject({ outcome: 'added', fact: { support: 1 } });
    expect(tea.fact.id).not.toBe(fact.id);
    await expect(memory.update(ALL, 'none', { confidence: 1 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(memory.update(ALL, fact.id, { text: ' ' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(memory.update({ tenant: 'beta', agent: null }, fact.id, { confidence: 1 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('counts accesses in the background', async ({ memory }) => {
    const { fact } = await memory.store('w1', told('Ann likes tea'));
    for (let i = 0; i < 5; i += 1) await memory.countAccess(ALL, [fact.id, 'none']);
    await memory.countAccess({ tenant: 'beta', agent: null }, [fact.id]);
    await memory.close();
    expect(await memory.get(ALL, fact.id)).toMatchObject({ accessCount: 5, support: 1 });
  });

  it('searches one category', async ({ memory }) => {
    await memory.store('w1', told('Tea is brewed in the kitchen', 0, { category: 'house' }));
    await memory.store('w2', told('Tea is sold in the market', 0, { category: 'town' }));
    expect(await memory.search(ALL, { text: 'tea', limit: 5, category: 'town' })).toMatchObject([{ text: 'Tea is sold in the market' }]);
  });
}
