import { isRetryable } from '@etude/contracts/errors';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { NEW_YEAR, storedFactOf as factOf } from '@etude/domain/testing/memory-records';
import { createReadStream, writeFileSync, appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { isErased } from '../src/upkeep/erasure-marks.js';
import { type MemoryPlace, openMemory } from '../src/open-memory.js';
import { live, otherEmbedder, TENANT } from './upkeep-samples.js';

/**
 * A process that uses memory: `write PLACE USER NAME` until it is stopped, `erase PLACE USER`, `export PLACE FILE`, `import PLACE FILE`,
 * `reembed PLACE`, `tell PLACE FACTS`. Prints a line for each finished step, and `done` at the end.
 */
const [role, place = '', name = '', other = ''] = process.argv.slice(2);
const memory = await openMemory({ store: JSON.parse(place) as MemoryPlace, embedder: new LexicalEmbedder() });
console.log('opened');
if (role === 'write') await write();
if (role === 'erase') await erase();
if (role === 'export') await exportTo(name);
if (role === 'import') await memory.upkeep.importLines(TENANT, toldLines(name), {});
if (role === 'reembed') await memory.upkeep.reembed(otherEmbedder(), { onProgress: async (progress) => tell(progress) });
if (role === 'tell') await tellFacts(name);
if (role !== 'tell') console.log('done');
await memory.close();

/** Retries like the erasure job, because other processes may read an old state of the file for longer than `purge` waits. */
async function erase(): Promise<void> {
  const owners = { tenant: TENANT, user: name };
  for (let left = 5; ; left -= 1) {
    try {
      return void (await memory.upkeep.erase(owners, { before: await memory.upkeep.newFrom(owners) }));
    } catch (error) {
      if (left === 0 || !isRetryable(error)) throw error;
    }
  }
}

async function write(): Promise<void> {
  for (let i = 0; ; i += 1) {
    const n = `${other}x${i}`;
    try {
      await live(memory, name, n);
      console.log(`${name}-${n}`);
    } catch (error) {
      // The write began before the erasure and would have ended after it.
      if (!isErased(error)) throw error;
    }
  }
}

async function exportTo(file: string): Promise<void> {
  writeFileSync(file, '');
  for await (const line of memory.upkeep.exportLines({ tenant: TENANT })) {
    appendFileSync(file, `${line}\n`);
    console.log('line');
  }
}

async function* toldLines(file: string): AsyncGenerator<string> {
  for await (const line of createInterface({ input: createReadStream(file) })) {
    console.log('line');
    yield line;
  }
}

function tell({ done }: { done: number }): void {
  console.log(String(done));
}

/** Stores all facts at the same time, each under its own id. */
async function tellFacts(facts: string): Promise<void> {
  const told = JSON.parse(facts) as Array<{ id: string; text: string; subject?: string; at: number }>;
  await Promise.all(
    told.map(async ({ id, at, ...fact }) => {
      const { outcome } = await memory.semantic.store(id, factOf({ ...fact, episodes: [], createdAt: NEW_YEAR + at }));
      console.log(`${id} ${outcome}`);
    }),
  );
}
