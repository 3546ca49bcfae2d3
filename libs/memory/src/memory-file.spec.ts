import type { Embedder } from '@etude/domain/ports/embedder';
import { episodeOf, SCOPE, skillOf, skillUseOf, transitionOf } from '@etude/domain/testing/memory-records';
import { chmodSync, mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { SCHEMA_VERSION } from './schema.js';
import type { MemoryOptions } from './sqlite-memory.js';
import { openMemory } from './sqlite-memory.js';
import { temporaryDirectory, temporaryMemory } from '../test/temporary-memory.js';

const ALL = { tenant: 'acme', agent: null };
const embedder = new LexicalEmbedder();

function directory(): string {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return path;
}

async function opened(options: Partial<MemoryOptions> = {}) {
  const made = await temporaryMemory(options);
  onTestFinished(made.close);
  return made;
}

/** A plain connection to the same file, as another program would have it. */
function stranger(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  onTestFinished(() => {
    if (db.isOpen) db.close();
  });
  return db;
}

describe('openMemory', () => {
  it('creates the file and its directories for its owner only', async () => {
    const path = join(directory(), 'a/b/memory.db');
    const memory = await openMemory({ path, embedder });
    memory.close();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('finds its data again', async () => {
    const { memory, path } = await opened();
    await memory.episodic.storeTransition(transitionOf());
    memory.close();
    const again = await openMemory({ path, embedder });
    onTestFinished(() => again.close());
    expect(await again.episodic.transitions(ALL, 'tabcdefgh-r1')).toEqual([transitionOf()]);
  });

  it('refuses a file of a newer layout and says what to do', async () => {
    const { memory, path } = await opened();
    memory.close();
    stranger(path).exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    await expect(openMemory({ path, embedder })).rejects.toMatchObject({
      code: 'MEMORY_VERSION',
      message: expect.stringMatching(/upgrade this service/),
    });
  });

  it('refuses vectors of another embedder and names the one to configure', async () => {
    const { path } = await opened();
    const other: Embedder = { profile: { ...embedder.profile, model: 'minilm' }, embed: (texts) => embedder.embed(texts) };
    await expect(openMemory({ path, embedder: other })).rejects.toMatchObject({
      code: 'MEMORY_VERSION',
      message: expect.stringMatching(
        /lexical-hash-1 \(384 dimensions\), but minilm.*Configure lexical-hash-1 again, or name another path/s,
      ),
    });
  });

  it('refuses a database of another program', async () => {
    const path = join(directory(), 'other.db');
    stranger(path).exec('CREATE TABLE t (x)');
    await expect(openMemory({ path, embedder })).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringContaining('another program'),
    });
  });

  it('refuses what is no database, a directory, and a path through a file', async () => {
    const at = directory();
    writeFileSync(join(at, 'text'), 'not a database, but long enough to be taken for one at first sight'.repeat(20));
    mkdirSync(join(at, 'dir'));
    for (const path of ['text', 'dir', 'text/memory.db']) {
      await expect(openMemory({ path: join(at, path), embedder })).rejects.toMatchObject({
        code: 'MEMORY_UNAVAILABLE',
        message: expect.stringContaining(join(at, path)),
      });
    }
  });

  it('refuses a damaged file', async () => {
    const { memory, path } = await opened();
    for (let i = 0; i < 30; i += 1) await memory.episodic.storeTransition(transitionOf({ id: `t${i}` }));
    memory.close();
    truncateSync(path, 8_192);
    const use = openMemory({ path, embedder }).then(async (damaged) => {
      onTestFinished(() => damaged.close());
      return damaged.episodic.search(ALL, { text: 'even', limit: 5 });
    });
    await expect(use).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE', message: expect.stringMatching(/damaged.*backup/) });
  });

  it.skipIf(process.getuid?.() === 0)('refuses a file that it may not write', async () => {
    const { memory, path } = await opened();
    memory.close();
    chmodSync(path, 0o400);
    await expect(openMemory({ path, embedder })).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });

  it('waits for a lock, then gives up', async () => {
    const { memory, path } = await opened({ lockWaitMs: 150 });
    const other = stranger(path);
    other.exec('BEGIN IMMEDIATE');
    await expect(memory.episodic.storeTransition(transitionOf())).rejects.toMatchObject({
      code: 'MEMORY_UNAVAILABLE',
      message: expect.stringContaining('locked'),
    });
    expect(await memory.episodic.recent(ALL, 0, 5)).toEqual([]);
    const waiting = memory.episodic.storeTransition(transitionOf());
    other.exec('COMMIT');
    await waiting;
    expect(await memory.episodic.transitions(ALL, 'tabcdefgh-r1')).toHaveLength(1);
  });

  it('keeps nothing of a write for which there is no room', async () => {
    const { memory } = await opened({ sizeMaxMiB: 1 });
    const large = transitionOf({ id: 'large', feedback: 'x'.repeat(2_000_000) });
    await memory.episodic.storeTransition(transitionOf());
    await expect(memory.episodic.storeTransition(large)).rejects.toMatchObject({
      code: 'MEMORY_FULL',
      message: expect.stringContaining('free space'),
    });
    expect(await memory.episodic.transitions(ALL, 'tabcdefgh-r1')).toEqual([transitionOf()]);
    expect(await memory.episodic.search(ALL, { text: 'even', limit: 5 })).toHaveLength(1);
    await memory.episodic.storeTransition(transitionOf({ id: 'small' }));
    await memory.check();
  });

  it('notices that its file is gone, and that it was closed', async () => {
    const { memory, path } = await opened();
    await memory.check();
    rmSync(path);
    await expect(memory.check()).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE', message: expect.stringContaining('gone') });
    memory.close();
    memory.close();
    await expect(memory.episodic.recent(ALL, 0, 1)).rejects.toMatchObject({ code: 'MEMORY_UNAVAILABLE' });
  });

  it('refuses vectors of a wrong length and keeps nothing', async () => {
    const wrong: Embedder = { profile: embedder.profile, embed: async (texts) => texts.map(() => new Float32Array(3)) };
    const { memory } = await opened({ embedder: wrong });
    await expect(memory.episodic.storeEpisode(episodeOf())).rejects.toMatchObject({ code: 'EMBEDDING_LENGTH_WRONG' });
    expect(await memory.episodic.recent(ALL, 0, 5)).toEqual([]);
  });
});

describe('appliedWrites', () => {
  it('applies each write once and remembers it', async () => {
    const { memory } = await opened();
    const { appliedWrites } = memory;
    expect(await appliedWrites.wasApplied('acme', 'w1')).toBe(false);
    expect(await appliedWrites.apply('acme', 'w1', { kind: 'transition', transition: transitionOf() })).toEqual({
      applied: true,
      skill: null,
    });
    expect(await appliedWrites.apply('acme', 'w1', { kind: 'transition', transition: transitionOf({ id: 'other' }) })).toEqual({
      applied: false,
      skill: null,
    });
    expect(await appliedWrites.wasApplied('acme', 'w1')).toBe(true);
    expect(await appliedWrites.wasApplied('beta', 'w1')).toBe(false);
    await appliedWrites.apply('acme', 'w2', { kind: 'episode', episode: episodeOf() });
    expect(await memory.episodic.transitions(ALL, 'tabcdefgh-r1')).toEqual([transitionOf()]);
    expect(await memory.episodic.recent(ALL, 0, 5)).toEqual([episodeOf()]);
  });

  it('answers the stored skill, the second time too', async () => {
    const { memory } = await opened();
    const write = { kind: 'skill', skill: skillOf({ version: 3 }) } as const;
    expect(await memory.appliedWrites.apply('acme', 'w1', write)).toEqual({ applied: true, skill: skillOf() });
    expect(await memory.appliedWrites.apply('acme', 'w1', write)).toEqual({ applied: false, skill: skillOf() });
    await memory.appliedWrites.apply('acme', 'w2', skillUseOf());
    await memory.appliedWrites.apply('acme', 'w2', skillUseOf());
    expect(await memory.procedural.get(ALL, 'sum_even')).toMatchObject({ executionCount: 1 });
  });

  it('notes nothing of a write that failed', async () => {
    const { memory } = await opened();
    await expect(memory.appliedWrites.apply('acme', 'w1', skillUseOf())).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(memory.appliedWrites.apply('beta', 'w2', { kind: 'episode', episode: episodeOf() })).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
    });
    expect(await memory.appliedWrites.wasApplied('acme', 'w1')).toBe(false);
    expect(await memory.appliedWrites.wasApplied('beta', 'w2')).toBe(false);
    expect(await memory.episodic.recent({ tenant: SCOPE.tenant, agent: null }, 0, 5)).toEqual([]);
  });
});
