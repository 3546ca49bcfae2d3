import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import type { Memory, MemoryOptions } from '../src/sqlite-memory.js';
import { openMemory } from '../src/sqlite-memory.js';

/** A directory of its own for one test, and how to remove it. */
export function temporaryDirectory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'etude-memory-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** An empty memory in a file of its own. */
export async function temporaryMemory(options: Partial<MemoryOptions> = {}): Promise<{ memory: Memory; path: string; close: () => void }> {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'memory.db');
  const memory = await openMemory({ path, embedder: new LexicalEmbedder(), ...options });
  const close = () => {
    memory.close();
    directory.remove();
  };
  return { memory, path, close };
}
