import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { SCOPE } from '@etude/domain/testing/memory-records';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { openMemory, type MemoryPlace } from '../src/open-memory.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { qdrantPlace } from './qdrant-under-test.js';
import { startProcess } from './start-process.js';
import { temporaryDirectory } from './temporary-memory.js';

const ALL = { tenant: SCOPE.tenant, agent: null };
const TIMEOUT_MS = 300_000;
const PROCESSES = 4;
const SUBJECT = "Ann's favourite colour";

interface Telling {
  readonly id: string;
  readonly text: string;
  readonly subject: string;
  readonly at: number;
}

/** Kills the process after so many facts, where that is asked for. Answers a line for each fact. */
async function tell(place: MemoryPlace, tellings: readonly Telling[], killAfter?: number): Promise<string[]> {
  const started = startProcess('tell', place, JSON.stringify(tellings));
  if (killAfter === undefined) await started.ended();
  else {
    await started.printed(killAfter + 1);
    await started.kill();
  }
  return started.lines.slice(1);
}

/** The tellings, dealt out to as many processes as there are. */
function dealt(tellings: readonly Telling[]): Telling[][] {
  return Array.from({ length: PROCESSES }, (_, i) => tellings.filter((_telling, at) => at % PROCESSES === i));
}

function manyWriters(place: () => MemoryPlace): void {
  const opened = async () => {
    const memory = await openMemory({ store: place(), embedder: new LexicalEmbedder() });
    onTestFinished(() => memory.close());
    return memory;
  };

  it('leaves one value of a subject, also where processes are killed on the way', { timeout: TIMEOUT_MS }, async () => {
    const blue = Array.from({ length: 30 }, (_, i) => ({ id: `b${i}`, text: `${SUBJECT} is blue`, subject: SUBJECT, at: 0 }));
    const green = Array.from({ length: 30 }, (_, i) => ({ id: `g${i}`, text: `${SUBJECT} is green`, subject: SUBJECT, at: 5 }));
    const shares = dealt([...blue, ...green].toSorted((a, b) => (a.id.slice(1) < b.id.slice(1) ? -1 : 1)));
    await Promise.all(shares.map((share) => tell(place(), share, 5)));
    await Promise.all(shares.map((share) => tell(place(), share)));
    const { semantic, upkeep } = await opened();
    await upkeep.reconcile();
    expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
    const current = (await semantic.list(ALL, 10)).filter(({ text }) => text.includes('colour'));
    expect(current).toMatchObject([{ text: "Ann's favourite colour is green", support: 30 }]);
    const history = await semantic.history(ALL, current[0]?.id ?? '');
    const blues = history.filter(({ text }) => text.includes('lue')).map(({ support }) => support);
    expect(blues.reduce((sum, support) => sum + support, 0)).toBeGreaterThanOrEqual(30);
    expect(Math.max(...blues)).toBeLessThanOrEqual(30);
  });
}

describe('many processes that tell facts to SQLite', () => {
  const { path, remove } = temporaryDirectory();
  afterAll(remove);
  manyWriters(() => ({ adapter: 'sqlite', path: join(path, 'memory.sqlite'), lockWaitMs: 60_000 }));
});

describeOnQdrant({ name: 'many processes that tell facts' }, (server) => {
  const prefix = `w${process.pid}`;
  afterAll(() => server().drop(prefix));
  manyWriters(() => qdrantPlace(server(), prefix));
});
