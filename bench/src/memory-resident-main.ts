import { openMemory } from '@etude/memory/open-memory';
import { MemoryData } from './memory-data.js';
import { queriesOf } from './memory-growth.js';
import { CLOCK, ourSide, QueryVectors } from './memory-sides.js';

const QUERIES = 200;

/** Arguments PATH and RECORDS: the parameters of `residentMiB`, which starts this program. */
const [path = '', records = '0'] = process.argv.slice(2);
const queries = queriesOf(new MemoryData(), Number(records), QUERIES);
const embedder = new QueryVectors().know(queries);
const before = process.memoryUsage.rss();
const memory = await openMemory({ store: { adapter: 'sqlite', path }, embedder, clock: CLOCK });
for (const query of queries) await ourSide(memory).searches['ours']?.(query);
process.stdout.write(String((process.memoryUsage.rss() - before) / 2 ** 20));
await memory.close();
