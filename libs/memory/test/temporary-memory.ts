import type { Clock } from '@etude/domain/ports/clock';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Memory } from '../src/memory.js';
import { openMemory } from '../src/open-memory.js';

/** A directory, and a function that removes it. */
export function temporaryDirectory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'etude-memory-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A directory that is removed with the test. */
export function directoryOfTest(): string {
  const { path, remove } = temporaryDirectory();
  onTestFinished(remove);
  return path;
}

/** A place for a memory in a file of its own, which is removed with the test. */
export const placeInFile = () => ({ adapter: 'sqlite', path: join(directoryOfTest(), 'memory.db') }) as const;

/** An empty memory in its own SQLite file. */
export async function temporaryMemory(
  options: { readonly clock?: Clock } = {},
): Promise<{ memory: Memory; path: string; close: () => Promise<void> }> {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'memory.db');
  const memory = await openMemory({ store: { adapter: 'sqlite', path }, embedder: new LexicalEmbedder(), ...options });
  const close = async () => {
    await memory.close();
    directory.remove();
  };
  return { memory, path, close };
}
