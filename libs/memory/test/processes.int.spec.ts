import { SCOPE } from '@etude/domain/testing/memory-records';
import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import type { Readable, Writable } from 'node:stream';
import { load } from 'sqlite-vec';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { openMemory } from '../src/sqlite-memory.js';
import { temporaryDirectory } from './temporary-memory.js';

const ALL = { tenant: SCOPE.tenant, agent: null };
const TIMEOUT_MS = 120_000;

interface Started {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly lines: string[];
  readonly exit: Promise<{ code: number | null; stderr: string }>;
  /** Resolves once so many lines were printed, or the process ended. */
  printed(count: number): Promise<void>;
}

const file = (name: string) => new URL(name, import.meta.url).pathname;

function start(...args: string[]): Started {
  const flags = ['--conditions=@etude/source', '--disable-warning=ExperimentalWarning', '--import', file('./source-hooks.mjs')];
  const child = spawn(process.execPath, [...flags, file('./memory-process.ts'), ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.on('error', () => undefined);
  const exit = once(child, 'close').then(([code]) => ({ code: code as number | null, stderr }));
  const printed = async (count: number) => {
    while (lines.length < count && child.exitCode === null) await Promise.race([once(reader, 'line'), exit]);
  };
  return { child, lines, exit, printed };
}

function newPath(): string {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return join(path, 'memory.db');
}

/** How many records there are in each place that a record has. */
function countsIn(path: string): { integrity: unknown; counts: unknown[] } {
  const db = new DatabaseSync(path, { allowExtension: true });
  load(db);
  const only = (sql: string) => Object.values(db.prepare(sql).get() ?? {})[0];
  const integrity = only('PRAGMA integrity_check');
  db.exec("INSERT INTO entry_words (entry_words) VALUES ('integrity-check')");
  const places = ['transition_record', 'entry', 'entry_text', 'entry_vector', 'applied'].map((table) =>
    only(`SELECT count(*) FROM ${table}`),
  );
  const counts = [...places, only('SELECT count(DISTINCT doc) FROM entry_words_instance'), only('SELECT sum(entries) FROM layer_size')];
  db.close();
  return { integrity, counts };
}

describe('one memory file in several processes', () => {
  it('is created once when six open it at the same time', { timeout: TIMEOUT_MS }, async () => {
    const path = newPath();
    const started = Array.from({ length: 6 }, (_, i) => start('writer', path, `w${i}`, '2'));
    const exits = await Promise.all(started.map(({ exit }) => exit));
    expect(exits).toEqual(started.map(() => ({ code: 0, stderr: '' })));
    expect(countsIn(path)).toEqual({ integrity: 'ok', counts: Array.from({ length: 7 }, () => 12) });
  });

  it('takes two writers and two readers without an error', { timeout: TIMEOUT_MS }, async () => {
    const path = newPath();
    const readers = [start('reader', path), start('reader', path)];
    const writers = [start('writer', path, 'a', '60'), start('writer', path, 'b', '60')];
    const written = await Promise.all(writers.map(({ exit }) => exit));
    await Promise.all(readers.map((reader) => reader.printed(reader.lines.length + 1)));
    for (const { child } of readers) child.stdin.write('stop\n');
    const read = await Promise.all(readers.map(({ exit }) => exit));
    expect([...written, ...read]).toEqual(Array.from({ length: 4 }, () => ({ code: 0, stderr: '' })));
    expect(countsIn(path)).toEqual({ integrity: 'ok', counts: Array.from({ length: 7 }, () => 120) });
  });

  it('holds nothing half written when a writer is killed', { timeout: TIMEOUT_MS }, async () => {
    const path = newPath();
    const reported: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const writer = start('writer', path, `k${round}`, '100000');
      await writer.printed(4 + round * 5);
      writer.child.kill('SIGKILL');
      await writer.exit;
      reported.push(...writer.lines.slice(1));
    }
    const { integrity, counts } = countsIn(path);
    expect(integrity).toBe('ok');
    expect(new Set(counts).size).toBe(1);
    const memory = await openMemory({ path, embedder: new LexicalEmbedder() });
    onTestFinished(() => memory.close());
    for (const id of reported) expect(await memory.episodic.transitions(ALL, `rollout-${id}`)).toHaveLength(1);
    expect(reported.length).toBeGreaterThan(20);
  });
});
