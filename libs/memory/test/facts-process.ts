import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { NEW_YEAR } from '@etude/domain/testing/memory-records';
import { factOf } from '@etude/domain/testing/semantic-memory-conformance';
import { openMemory } from '../src/open-memory.js';
import type { MemoryPlace } from '../src/open-memory.js';

/** A process that tells facts: `PLACE TELLINGS`, both JSON; all at once, each under its own id. Prints a line for each. */
const [place = '', tellings = ''] = process.argv.slice(2);
const memory = await openMemory({ store: JSON.parse(place) as MemoryPlace, embedder: new LexicalEmbedder() });
console.log('ready');
await Promise.all(
  (JSON.parse(tellings) as Array<{ id: string; text: string; subject?: string; at: number }>).map(async ({ id, text, subject, at }) => {
    const { outcome } = await memory.semantic.store(
      id,
      factOf({ text, ...(subject === undefined ? {} : { subject }), episodes: [], createdAt: NEW_YEAR + at }),
    );
    console.log(`${id} ${outcome}`);
  }),
);
await memory.close();
