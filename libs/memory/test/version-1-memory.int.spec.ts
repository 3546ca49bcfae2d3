import { episodeOf, factOf, SCOPE, skillOf, skillUseOf, transitionOf } from '@etude/domain/testing/memory-records';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { openMemory } from '../src/open-memory.js';
import { temporaryDirectory } from './temporary-memory.js';
import { writeVersion1 } from './version-1-file.js';

const ALL = { tenant: 'acme', agent: null };
const BOB = { ...SCOPE, user: 'bob' };
/** Told twice by one user, in words that were two facts then, and once by another. */
const FACTS = [
  factOf({ id: 'old-1', text: 'Input ends here.' }),
  factOf({ id: 'old-2', text: 'Input  ends here', episodes: ['e2'] }),
  factOf({ id: 'old-1', text: 'Input ends here.', scope: BOB }),
];

function writeRecords(path: string): void {
  writeVersion1(path, 0);
  const db = new DatabaseSync(path);
  const insert = (kind: string, value: object) =>
    db.prepare(`INSERT INTO ${kind}_record (tenant, json) VALUES (1, ?)`).run(JSON.stringify(value));
  insert('transition', transitionOf());
  insert('episode', episodeOf({ reflection: 'Bisection would have converged.' }));
  for (const fact of FACTS) insert('fact', fact);
  db.prepare('UPDATE skill_record SET json = ?').run(JSON.stringify(skillOf({ status: 'active', fingerprints: [] })));
  for (const [what, id] of ['write w2', 'use u1', 'facts n1'].map((note) => note.split(' '))) {
    db.prepare('INSERT INTO applied VALUES (1, ?, ?)').run(what ?? '', id ?? '');
  }
  db.close();
}

async function carriedOver() {
  const { path: directory, remove } = temporaryDirectory();
  const path = join(directory, 'memory.sqlite');
  writeRecords(path);
  const memory = await openMemory({ store: { adapter: 'sqlite', path }, embedder: new LexicalEmbedder() });
  onTestFinished(async () => {
    await memory.close();
    remove();
  });
  return memory;
}

it('gives back every record of a file of the first layout, and finds it', async () => {
  const { episodic, semantic, procedural } = await carriedOver();
  expect(await episodic.transitions(ALL, transitionOf().rolloutId)).toEqual([transitionOf()]);
  expect(await episodic.recent(ALL, 0, 9)).toMatchObject([{ id: episodeOf().id, reflection: 'Bisection would have converged.' }]);
  expect((await semantic.search(ALL, { text: 'bisection', limit: 1 })).map(({ kind }) => kind)).toEqual(['reflection']);
  expect(await procedural.byFingerprint(ALL, 'f2')).toEqual([skillOf({ status: 'active', fingerprints: ['f1', 'f2'] })]);
  expect(await procedural.search(ALL, { text: 'Add up all even values', limit: 1 })).toMatchObject([{ skill: { name: 'sum_even' } }]);
});

it('counts as one what are the same words now, of one owner', async () => {
  const { semantic } = await carriedOver();
  const facts = await semantic.list(ALL, 9);
  const supports = new Map([
    [null, 2],
    ['bob', 1],
  ]);
  expect(facts).toHaveLength(2);
  expect(new Map(facts.map(({ scope, support }) => [scope.user, support]))).toEqual(supports);
});

it('knows which writes were applied before', async () => {
  const { appliedWrites, semantic, procedural } = await carriedOver();
  expect(await appliedWrites.apply('acme', 'w1', { kind: 'transition', transition: transitionOf() })).toMatchObject({ applied: false });
  expect(await appliedWrites.apply('acme', 'u1', skillUseOf())).toMatchObject({ applied: false });
  expect(await appliedWrites.wasApplied('acme', 'w2')).toBe(true);
  expect(await semantic.wasApplied('acme', 'n1')).toBe(true);
  expect(await procedural.get(ALL, 'sum_even')).toMatchObject({ executionCount: 0 });
});
