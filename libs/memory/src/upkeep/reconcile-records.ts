import { mendDocuments } from '../layers/documents.js';
import { noteRecords } from '../layers/episodic-layer.js';
import { mergeDuplicates } from '../layers/fact-writes.js';
import { insertsOf } from '../layers/indexed-texts.js';
import { parseBody } from '../layers/records.js';
import type { MemoryRecord, RecordStore, StoredRecord, StoreReport } from '../record-store.js';
import { reconcileSkills } from './reconcile-skills.js';
import type { UpkeepDeps } from './record-upkeep.js';
import type { Episode } from '@etude/contracts/memory';
import type { Embedder } from '@etude/domain/ports/embedder';

const SENTENCES_MAX = 100;

const REASON_MAX_CHARS = 300;

/** Each fact costs a search; those that are older were looked at before. */
const FACTS_SINCE_MS = 7 * 86_400_000;

/**
 * What the store finds half written in itself, then what the layers can have left between two records of theirs. A record that nobody
 * can read is a problem in the report, and keeps neither the rest of its tenant nor any other from being looked at.
 */
export async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store, embedder } = deps;
  let report = await store.reconcile();
  for (const tenant of await store.tenants()) {
    const looks: ReadonlyArray<[string, () => Promise<StoreReport>]> = [
      ['episodes', () => reconcileNotes(store, embedder, tenant)],
      ['documents', () => reconcileDocuments(store, tenant)],
      ['facts', () => reconcileFacts(deps, tenant)],
      ['skills', () => reconcileSkills(deps, tenant)],
    ];
    for (const [what, look] of looks) report = together(report, await lookAt(store, `the ${what} of ${tenant}`, look));
  }
  return report;
}

/** @throws EtudeError of a store that does not answer at all */
async function lookAt(store: RecordStore, what: string, look: () => Promise<StoreReport>): Promise<StoreReport> {
  try {
    return await look();
  } catch (error) {
    await store.check();
    const reason = (error instanceof Error ? error.message : String(error)).slice(0, REASON_MAX_CHARS);
    return { checked: {}, repaired: [], problems: [`${what} were not looked at to the end: ${reason}`] };
  }
}

async function reconcileDocuments(store: UpkeepDeps['store'], tenant: string): Promise<StoreReport> {
  return { checked: {}, repaired: await mendDocuments(store, tenant), problems: [] };
}

/** Facts that were told in the same instant, and one that was cut off before it took the place of another. */
async function reconcileFacts(deps: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const { looked, merged, superseded } = await mergeDuplicates(deps, { tenant, agent: null }, { since: deps.clock.now() - FACTS_SINCE_MS });
  const repaired = [
    ...(merged > 0 ? [`${merged} facts of ${tenant} that said the same are one each now`] : []),
    ...(superseded > 0 ? [`${superseded} facts of ${tenant} gave way to the newer ones that contradict them`] : []),
  ];
  return { checked: { facts: looked }, repaired, problems: [] };
}

function together(a: StoreReport, b: StoreReport): StoreReport {
  const checked: Record<string, number> = { ...a.checked };
  for (const [name, count] of Object.entries(b.checked)) checked[name] = (checked[name] ?? 0) + count;
  return {
    checked,
    repaired: [...a.repaired, ...b.repaired].slice(0, SENTENCES_MAX),
    problems: [...a.problems, ...b.problems].slice(0, SENTENCES_MAX),
  };
}

const NOTE_REASON_MAX_CHARS = 200;

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
      const reason = (error as Error).message.slice(0, NOTE_REASON_MAX_CHARS);
      problems.push(`episode ${JSON.stringify(record.key)} of ${record.scope.tenant} cannot be read: ${reason}`);
    }
  }
  return { notes, problems };
}
