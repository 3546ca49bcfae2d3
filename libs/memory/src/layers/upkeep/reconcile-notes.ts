import type { Episode } from '@etude/contracts/memory';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { MemoryRecord, RecordStore, StoredRecord, StoreReport } from '../../record-store.js';
import { noteRecords } from '../episode-notes.js';
import { insertsOf } from '../record-inserts.js';
import { parseBody } from '../stored-body.js';

const REASON_MAX_CHARS = 200;

/**
 * A summary or reflection that a crash has kept from being written is made again from its episode; one whose episode a crash has
 * kept from being written goes, and comes with the episode when that is stored again.
 */
export async function reconcileNotes(store: RecordStore, embedder: Embedder, tenant: string): Promise<StoreReport> {
  const repaired: string[] = [];
  const problems: string[] = [];
  let episodes = 0;
  for await (const page of store.each({ tenant }, 'episodic', { kinds: ['episode'] })) {
    episodes += page.length;
    const { notes, problems: unread } = readNotes(page);
    problems.push(...unread);
    for (const kind of ['summary', 'reflection'] as const) repaired.push(...(await mendPage(store, embedder, tenant, notes, kind)));
  }
  for (const kind of ['summary', 'reflection'] as const)
    for await (const page of store.each({ tenant }, 'semantic', { kinds: [kind] }))
      repaired.push(...(await dropOrphans(store, tenant, page, kind)));
  return { checked: { episodes }, repaired, problems };
}

/** Where an episode comes in between, its note is missing and made again by the next look. */
async function dropOrphans(
  store: RecordStore,
  tenant: string,
  page: readonly StoredRecord[],
  kind: 'summary' | 'reflection',
): Promise<readonly string[]> {
  const ids = page.map(({ key }) => key);
  const there = new Set((await store.load({ tenant, agent: null }, 'episodic', 'episode', ids)).map(({ key }) => key));
  const orphans = ids.filter((id) => !there.has(id));
  if (orphans.length === 0) return [];
  await store.remove({ tenant }, 'semantic', { kinds: [kind], where: { id: orphans } });
  return orphans.map((id) => `the ${kind} of episode ${id}, which was cut off before it was stored, was removed`);
}

async function mendPage(
  store: RecordStore,
  embedder: Embedder,
  tenant: string,
  notes: readonly MemoryRecord[],
  kind: 'summary' | 'reflection',
): Promise<readonly string[]> {
  const wanted = notes.filter((note) => note.kind === kind);
  const keys = wanted.map(({ key }) => key);
  const known = new Set((await store.load({ tenant, agent: null }, 'semantic', kind, keys)).map(({ key }) => key));
  const missing = wanted.filter(({ key }) => !known.has(key));
  if (missing.length === 0) return [];
  const done = await store.write(tenant, await insertsOf(embedder, missing));
  return missing.flatMap(({ key }, i) => (done[i] === true ? [`the ${kind} of episode ${key} was missing, and was made again`] : []));
}

/** Of an episode that cannot be read there are none, but a problem. */
function readNotes(page: readonly StoredRecord[]) {
  const notes: MemoryRecord[] = [];
  const problems: string[] = [];
  for (const record of page) {
    try {
      notes.push(...noteRecords(parseBody<Episode>(record).value));
    } catch (error) {
      const reason = (error as Error).message.slice(0, REASON_MAX_CHARS);
      problems.push(`episode ${JSON.stringify(record.key)} of ${record.scope.tenant} cannot be read: ${reason}`);
    }
  }
  return { notes, problems };
}
