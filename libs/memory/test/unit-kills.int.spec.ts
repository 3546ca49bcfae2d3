import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { factOf, NEW_YEAR } from '@etude/domain/testing/memory-records';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openMemory } from '../src/open-memory.js';
import { sourceProcess } from './start-process.js';
import { directoryOfTest } from './temporary-memory.js';
import { fillForRun, NOW, work } from './unit-run.js';

const TIMEOUT_MS = 240_000;
const EFFECTS_MAX = 30;
const ALL = { tenant: 'acme', agent: null };

function copyOf(from: string): string {
  const path = directoryOfTest();
  cpSync(from, path, { recursive: true });
  return path;
}

/** Runs a process that kills itself after this number of effects. Returns whether its work ended before. */
async function ends(role: 'run' | 'undo', dir: string, effects: number): Promise<boolean> {
  const { code, signal, stderr } = await sourceProcess('./unit-process.ts', role, dir, String(effects)).exit;
  expect({ code: code ?? 0, stderr }).toEqual({ code: 0, stderr: '' });
  return signal === null;
}

const calmly = (role: 'run' | 'undo', dir: string) => work(role, dir, async (done) => done);

/** Kills the work on a copy of `start` after each of its effects in turn, and repeats it. Returns the number of effects. */
async function killedAtEach(
  role: 'run' | 'undo',
  start: string,
  states: ReadonlyArray<Awaited<ReturnType<typeof stateOf>>>,
): Promise<number> {
  for (let effects = 1; effects < EFFECTS_MAX; effects += 1) {
    const dir = copyOf(start);
    const survived = await ends(role, dir, effects);
    expect(states.map(({ recalled }) => recalled)).toContainEqual((await stateOf(dir)).recalled);
    await calmly(role, dir);
    expect(await stateOf(dir)).toEqual(states.at(-1));
    expect(readFileSync(join(dir, 'calls'), 'utf8')).toBe('xx');
    if (survived) return effects - 1;
  }
  throw new Error('the work never finished');
}

const openedAt = (dir: string) =>
  openMemory({ store: { adapter: 'sqlite', path: join(dir, 'memory.db') }, embedder: new LexicalEmbedder(), clock: { now: () => NOW } });

/** What recall shows, and all that a run has stored. */
async function stateOf(dir: string) {
  const memory = await openedAt(dir);
  try {
    const hits = async (context: string) => Object.values(await memory.recall({ ...ALL, agent: 'coder', user: null }, { context }));
    const recalled = [await hits('Double the number.'), await hits('Square a word quietly.')];
    const records = await memory.store.find(ALL, 'semantic', { kinds: ['fact', 'applied'] }, { order: 'key', limit: 99 });
    const units = await memory.store.find(ALL, 'episodic', { kinds: ['unit'] }, { order: 'key', limit: 9 });
    const stored = [...records, ...units].map(({ key, body, shown }) => [key, body, shown]);
    const texts = ['lines', 'answers', 'outbox'].map((name) => join(dir, name));
    return { recalled, stored, left: texts.map((text) => (existsSync(text) ? JSON.parse(readFileSync(text, 'utf8')) : {}) as object) };
  } finally {
    await memory.close();
  }
}

async function filled(): Promise<string> {
  const dir = directoryOfTest();
  const memory = await openedAt(dir);
  await fillForRun(memory, (text, subject) =>
    memory.semantic.store(text, factOf({ text, episodes: [], createdAt: NEW_YEAR, ...(subject === undefined ? {} : { subject }) })),
  );
  await memory.close();
  return dir;
}

it('leaves all of a unit or nothing when its process is killed after any effect', { timeout: TIMEOUT_MS }, async () => {
  const start = await filled();
  const before = await stateOf(start);
  const done = copyOf(start);
  await calmly('run', done);
  const after = await stateOf(done);
  expect(after.recalled).not.toEqual(before.recalled);
  expect(await killedAtEach('run', start, [before, after])).toBeGreaterThan(6);

  const undone = copyOf(done);
  await calmly('undo', undone);
  const taken = await stateOf(undone);
  expect(taken.recalled).toEqual(before.recalled);
  expect(await killedAtEach('undo', done, [after, taken])).toBeGreaterThan(2);
});
