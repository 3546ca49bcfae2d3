import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { openMemory } from '@etude/memory/open-memory';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { factsData } from './facts-data.js';
import { factsLoad } from './facts-load.js';

it('makes the same experiences each time', () => {
  const { experiences, queries } = factsData();
  const count = (kind: string) => experiences.filter((experience) => experience.kind === kind).length;
  expect([experiences.length, count('repeat'), count('contradiction'), queries.length]).toEqual([500, 50, 25, 200]);
  expect(factsData()).toEqual({ experiences, queries });
});

it('finds no copy, and no stale value ahead of the fresh one', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'etude-facts-'));
  const store = { adapter: 'sqlite', path: join(folder, 'memory.sqlite') } as const;
  const memory = await openMemory({ store, embedder: new LexicalEmbedder() });
  try {
    const figures = await factsLoad(memory);
    console.log(JSON.stringify(figures));
    expect(figures).toMatchObject({ facts_copies: 0, facts_lost: 0, facts_stale_ahead: 0, facts_stale_current: 0 });
  } finally {
    await memory.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
