import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Embedder } from '@etude/domain/ports/model';
import { openMemory, type MemoryPlace } from '@etude/memory/open-memory';
import type { Memory } from '@etude/memory/memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { findQdrant, startQdrant } from '@etude/test-support/qdrant';
import { factsData, USERS } from './facts-data.js';
import { factsLoad } from './facts-load.js';

type Say = (text: string) => void;

const TENANT = 'facts';

/** The figures of `factsLoad` with the installed embedder, and the number of texts that are left after everything was erased. */
export async function factsFigures(adapter: 'sqlite' | 'qdrant', say: Say): Promise<Record<string, number>> {
  const embedder = await embedderFrom(embedderConfig.parse(process.env), { warn: say });
  say(`500 experiences, with ${embedder.profile.model} ...`);
  return adapter === 'sqlite' ? inSqlite(embedder) : inQdrant(embedder);
}

async function inSqlite(embedder: Embedder): Promise<Record<string, number>> {
  const dir = await mkdtemp(join(tmpdir(), 'etude-bench-facts-'));
  const path = join(dir, 'memory.db');
  const bytes = async () => ['', '-wal'].map((end) => readFileSync(`${path}${end}`).toString('latin1')).join('\n');
  try {
    return await loaded({ adapter: 'sqlite', path }, embedder, bytes);
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function inQdrant(embedder: Embedder): Promise<Record<string, number>> {
  const server = await startQdrant(await findQdrant());
  const collectionPrefix = `bench-facts-${process.pid}`;
  const { url, apiKey, caPath } = server;
  try {
    const place = { adapter: 'qdrant', url, apiKey, caPath, collectionPrefix, timeoutMs: 60_000 } as const;
    return await loaded(place, embedder, () => everyPoint(server, collectionPrefix));
  } finally {
    await server.drop(collectionPrefix);
    await server.stop();
  }
}

async function loaded(store: MemoryPlace, embedder: Embedder, everything: () => Promise<string>): Promise<Record<string, number>> {
  const memory = await openMemory({ store, embedder });
  try {
    const figures = await factsLoad(memory);
    const before = textsIn(await everything());
    if (before === 0) throw new Error('no stored text was found before the erasure, so the erasure cannot be checked');
    for (const user of users()) await memory.upkeep.erase({ tenant: TENANT, user }, { before: Number.MAX_SAFE_INTEGER });
    return { ...figures, facts_texts_left: textsIn(await everything()), facts_records_left: await recordsLeft(memory) };
  } finally {
    await memory.close();
  }
}

function textsIn(everything: string): number {
  const told = new Set(factsData().experiences.map(({ text }) => text));
  return [...told].filter((text) => everything.includes(text)).length;
}

async function recordsLeft(memory: Memory): Promise<number> {
  const left = await Promise.all(users().map((user) => memory.upkeep.findErased({ tenant: TENANT, user })));
  return left.flatMap((places) => Object.values(places)).reduce((sum, count) => sum + count, 0);
}

const users = () => Array.from({ length: USERS }, (_, user) => `user-${String(user).padStart(2, '0')}`);

/** Payloads of all collections whose names begin with `prefix`, as JSON. */
async function everyPoint({ url, apiKey }: { url: string; apiKey: string | null }, prefix: string): Promise<string> {
  const headers = { 'content-type': 'application/json', ...(apiKey === null ? {} : { 'api-key': apiKey }) };
  const ask = async (path: string, init: RequestInit = {}) =>
    (await fetch(`${url}${path}`, { ...init, headers })).json() as Promise<Answer>;
  const { result } = await ask('/collections');
  const pages: string[] = [];
  for (const { name } of (result.collections ?? []).filter((each) => each.name.startsWith(prefix))) {
    for (let offset: unknown = null; ;) {
      const body = JSON.stringify({ limit: 1_000, with_payload: true, ...(offset === null ? {} : { offset }) });
      const page = await ask(`/collections/${name}/points/scroll`, { method: 'POST', body });
      pages.push(JSON.stringify(page.result.points));
      offset = page.result.next_page_offset ?? null;
      if (offset === null) break;
    }
  }
  return pages.join('\n').replaceAll('\\\\', '\\').replaceAll('\\"', '"');
}

interface Answer {
  readonly result: {
    readonly collections?: ReadonlyArray<{ readonly name: string }>;
    readonly points?: unknown;
    readonly next_page_offset?: unknown;
  };
}
