import type { Fact } from '@etude/contracts/memory';
import type { Embedder } from '@etude/domain/ports/model';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ImportReport, Memory } from '../src/memory.js';
import { LAYERS } from '../src/record-store.js';
import { type MemoryPlace, openMemory } from '../src/open-memory.js';
import { startProcess } from './start-process.js';
import { directoryOfTest } from './temporary-memory.js';
import { exportOf, linesOf, live, otherEmbedder, TENANT } from './upkeep-samples.js';

const TIMEOUT_MS = 240_000;
const ALL = { tenant: TENANT, agent: null };

async function open(at: MemoryPlace, embedder: Embedder = new LexicalEmbedder()): Promise<Memory> {
  const memory = await openMemory({ store: at, embedder });
  onTestFinished(() => memory.close());
  return memory;
}

async function filled(at: MemoryPlace, records: number): Promise<Memory> {
  const memory = await open(at);
  for (let i = 0; i < records; i += 1) await live(memory, i % 2 ? 'bob' : 'eve', String(i));
  return memory;
}

/** Requires that a second reconciliation finds nothing to repair. */
async function expectClean({ upkeep }: Memory): Promise<void> {
  expect(await upkeep.reconcile()).toMatchObject({ problems: [] });
  expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
}

/** Kills processes at random moments and checks that a repeat completes their work. `place` returns an empty place at each call. */
export function upkeepUnderKills(name: string, place: () => MemoryPlace, { records }: { readonly records: number }): void {
  describe(`${name} when processes are killed`, () => {
    it('has every answered write in full', { timeout: TIMEOUT_MS }, async () => {
      expect(await answeredWrites(place())).toBeGreaterThanOrEqual(6);
    });
    it('erases exactly, also records written meanwhile', { timeout: TIMEOUT_MS }, async () => {
      expect(await leftByErasure(place(), records)).toEqual([0, 0, 0]);
    });
    it('imports every exported record once', { timeout: TIMEOUT_MS }, async () => {
      expect(await importedAgain(place(), place(), records)).toMatchObject({ added: 0, refused: [] });
    });
    it('moves to another model while others write', { timeout: TIMEOUT_MS }, async () => {
      expect(await modelsAfterMove(place(), records)).toEqual(['other']);
    });
    it('stores one current value of a subject when several processes store facts', { timeout: TIMEOUT_MS }, async () => {
      expect(await factsOfManyWriters(place())).toMatchObject([{ text: "Ann's favourite colour is green", support: 16 }]);
    });
  });
}

async function answeredWrites(at: MemoryPlace): Promise<number> {
  const answered: string[] = [];
  for (let round = 0; round < 2; round += 1) {
    const writers = ['a', 'b'].map((writer) => startProcess('write', at, 'bob', `${writer}${round}`));
    await Promise.all(writers.map((writer) => writer.printed(3 + round)));
    await Promise.all(writers.map((writer) => writer.kill()));
    answered.push(...writers.flatMap(({ lines }) => lines.slice(1)));
  }
  const memory = await open(at);
  await expectClean(memory);
  for (const id of answered) expect(await memory.episodic.get(ALL, id)).not.toBeNull();
  const { layers } = await memory.upkeep.stats(TENANT);
  const counts = Object.fromEntries(layers.map(({ kind, records: count }) => [kind, count]));
  // Notes are written before their episode.
  expect(Math.min(counts['summary'] ?? 0, counts['reflection'] ?? 0)).toBeGreaterThanOrEqual(counts['episode'] ?? 0);
  return answered.length;
}

async function leftByErasure(at: MemoryPlace, records: number): Promise<number[]> {
  const memory = await filled(at, records);
  const writers = ['bob', 'eve'].map((user, i) => startProcess('write', at, user, `w${i}`));
  await Promise.all(writers.map((writer) => writer.printed(2)));
  const killed = startProcess('erase', at, 'bob');
  await killed.printed(1);
  await killed.kill();
  await startProcess('erase', at, 'bob').ended();
  const [mark] = await memory.store.find(ALL, 'semantic', { kinds: ['erasure'] }, { order: 'key', limit: 9 });
  const owners = { tenant: TENANT, user: 'bob' };
  for (const layer of LAYERS) expect(await memory.store.count(owners, layer, { createdBefore: mark?.createdAt ?? 0 })).toBe(0);
  await Promise.all(writers.map((writer) => writer.kill()));
  await memory.upkeep.erase(owners, { before: await memory.upkeep.newFrom(owners) });
  expect(await memory.upkeep.findErased(owners)).toEqual({});
  for (const id of writers[1]?.lines.slice(1) ?? []) expect(await memory.episodic.get(ALL, id)).not.toBeNull();
  await expectClean(memory);
  expect((await memory.semantic.search(ALL, { text: 'bob', limit: 50 })).filter(({ text }) => text.includes('bob'))).toEqual([]);
  return Promise.all(LAYERS.map((layer) => memory.store.count(owners, layer, {})));
}

/** Four processes store 32 facts of one subject, are killed, and store them again. Returns the current facts. */
async function factsOfManyWriters(at: MemoryPlace): Promise<readonly Fact[]> {
  const subject = "Ann's favourite colour";
  const facts = Array.from({ length: 32 }, (_, i) => ({
    id: `f${i}`,
    text: `${subject} is ${i % 2 ? 'green' : 'blue'}`,
    subject,
    at: 5 * (i % 2),
  }));
  const shares = [0, 1, 2, 3].map((share) => JSON.stringify(facts.filter((_, i) => Math.floor(i / 2) % 4 === share)));
  const killed = shares.map((share) => startProcess('tell', at, share));
  await Promise.all(killed.map((each) => each.printed(6)));
  await Promise.all(killed.map((each) => each.kill()));
  await Promise.all(shares.map((share) => startProcess('tell', at, share).ended()));
  const memory = await open(at);
  await expectClean(memory);
  const current = await memory.semantic.list(ALL, 10);
  const history = await memory.semantic.history(ALL, current[0]?.id ?? '');
  const blues = history.filter(({ text }) => text.includes('blue')).map(({ support }) => support);
  expect(blues.reduce((sum, support) => sum + support, 0)).toBeGreaterThanOrEqual(16);
  expect(Math.max(...blues)).toBeLessThanOrEqual(16);
  return current;
}

/** Rounded, because the last digits of a BM25 sum depend on the order in which records were written. */
function rounded(score = 0): number {
  return Math.round(score * 1_000);
}

async function importedAgain(from: MemoryPlace, to: MemoryPlace, records: number): Promise<ImportReport> {
  const memory = await filled(from, records);
  const [lines, cut] = ['lines', 'cut'].map((name) => join(directoryOfTest(), name)) as [string, string];
  const exporter = startProcess('export', from, cut);
  await exporter.printed(20);
  await exporter.kill();
  await startProcess('export', from, lines).ended();
  const exported = readFileSync(lines, 'utf8').trimEnd().split('\n');
  expect(exported.toSorted()).toEqual((await exportOf(memory)).toSorted());
  expect(exported).toEqual(expect.arrayContaining(readFileSync(cut, 'utf8').split('\n').slice(0, -1)));
  const importer = startProcess('import', to, lines);
  await importer.printed(4 * records);
  await importer.kill();
  await startProcess('import', to, lines).ended();
  const target = await open(to);
  expect((await exportOf(target)).toSorted()).toEqual(exported.toSorted());
  expect(await target.upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
  const query = { text: 'Count the bob-1 of a list', limit: 3, explain: true };
  const hits = async (one: Memory) =>
    (await one.episodic.search(ALL, query)).map(({ kind, id, similarity, explanation }) => [
      kind,
      id,
      rounded(similarity),
      rounded(explanation?.['bm25']),
    ]);
  expect(await hits(target)).toEqual(await hits(memory));
  return target.upkeep.importLines(TENANT, linesOf(exported), {});
}

async function modelsAfterMove(at: MemoryPlace, records: number): Promise<string[]> {
  const memory = await filled(at, records);
  const writer = startProcess('write', at, 'eve', 'w');
  const killed = startProcess('reembed', at);
  await killed.printed(2);
  await killed.kill();
  await writer.printed(3);
  await writer.kill();
  await startProcess('reembed', at).ended();
  expect(await memory.upkeep.reembed(otherEmbedder(), {})).toEqual({ embedded: 0, left: 0, state: 'finished' });
  await expectClean(memory);
  const moved = await open(at, otherEmbedder());
  const found = await moved.episodic.search({ ...ALL, user: 'bob' }, { text: 'Count the bob-1 of a list', limit: 1, explain: true });
  expect(found[0]?.id).toBe('bob-1');
  expect(found[0]?.similarity).toBeGreaterThan(0.9);
  await live(moved, 'eve', 'new');
  expect(await memory.upkeep.reembed(new LexicalEmbedder(), {})).toMatchObject({ left: 0 });
  await moved.upkeep.dropModel(new LexicalEmbedder().profile.model);
  return (await moved.store.models()).map((model) => model.name);
}
