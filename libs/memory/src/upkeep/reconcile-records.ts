import { mendDocuments } from '../layers/documents.js';
import { noteRecords } from '../layers/episodic-layer.js';
import { mergeDuplicates } from '../layers/fact-writes.js';
import { insertsOf } from '../layers/indexed-texts.js';
import { parseBody, unlessUnreadable } from '../layers/records.js';
import type { MemoryRecord, StoredRecord, StoreReport } from '../record-store.js';
import { LAYERS } from './owned-records.js';
import { reconcileSkills } from './reconcile-skills.js';
import type { UpkeepDeps } from './record-upkeep.js';
import type { Episode } from '@etude/contracts/memory';

const SENTENCES_MAX = 100;
const DAY_MS = 86_400_000;
/** Each fact costs a search; those that are older were looked at before. */
const FACTS_SINCE_MS = 7 * DAY_MS;
/** A write or request is not repeated after so long. */
const APPLIED_KEPT_MS = 30 * DAY_MS;
const NOTES = ['summary', 'reflection'] as const;

/**
 * What the store finds half written in itself, then what the layers can have left between two records of theirs. A record that nobody
 * can read is a problem in the report, and keeps no other record from being looked at.
 */
export async function reconcileRecords(deps: UpkeepDeps): Promise<StoreReport> {
  const { store } = deps;
  let report = await store.reconcile();
  for (const tenant of await store.tenants()) {
    const looks: ReadonlyArray<[string, () => Promise<StoreReport>]> = [
      ['episodes', () => reconcileNotes(deps, tenant)],
      ['documents', async () => ({ checked: {}, repaired: await mendDocuments(store, tenant), problems: [] })],
      ['facts', () => reconcileFacts(deps, tenant)],
      ['skills', () => reconcileSkills(deps, tenant)],
      ['notes of applied writes', () => dropOldNotes(deps, tenant)],
    ];
    for (const [what, look] of looks) {
      const problems: string[] = [];
      const found = await unlessUnreadable(store, problems, `the ${what} of ${tenant}`, look);
      report = together(report, found ?? { checked: {}, repaired: [], problems });
    }
  }
  return report;
}

/** Facts that were told in the same instant, and one that was cut off before it took the place of another. */
async function reconcileFacts(deps: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const since = deps.clock.now() - FACTS_SINCE_MS;
  const { looked, merged, superseded, problems } = await mergeDuplicates(deps, { tenant, agent: null }, { since });
  const repaired = [
    ...(merged > 0 ? [`${merged} facts of ${tenant} that said the same are one each now`] : []),
    ...(superseded > 0 ? [`${superseded} facts of ${tenant} gave way to newer ones of their subject`] : []),
  ];
  return { checked: { facts: looked }, repaired, problems };
}

async function dropOldNotes({ store, clock }: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const filter = { kinds: ['applied'], createdBefore: clock.now() - APPLIED_KEPT_MS } as const;
  for (const layer of LAYERS) await store.remove({ tenant }, layer, filter);
  return { checked: {}, repaired: [], problems: [] };
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

/**
 * A summary or reflection that a crash has kept from being written is made again from its episode; one whose episode a crash has
 * kept from being written goes, and comes with the episode when that is stored again.
 */
async function reconcileNotes(deps: UpkeepDeps, tenant: string): Promise<StoreReport> {
  const repaired: string[] = [];
  const problems: string[] = [];
  let episodes = 0;
  for await (const page of deps.store.each({ tenant }, 'episodic', { kinds: ['episode'] })) {
    episodes += page.length;
    const notes: MemoryRecord[] = [];
    for (const record of page)
      await unlessUnreadable(deps.store, problems, `episode ${JSON.stringify(record.key)} of ${tenant}`, async () =>
        notes.push(...noteRecords(parseBody<Episode>(record).value)),
      );
    for (const kind of NOTES) {
      const wanted = notes.filter((note) => note.kind === kind);
      repaired.push(...(await insertMissing(deps, tenant, wanted, kind)));
    }
  }
  for (const kind of NOTES)
    for await (const page of deps.store.each({ tenant }, 'semantic', { kinds: [kind] }))
      repaired.push(...(await dropOrphans(deps, tenant, page, kind)));
  return { checked: { episodes }, repaired, problems };
}

async function insertMissing(
  { store, embedder }: UpkeepDeps,
  tenant: string,
  wanted: readonly MemoryRecord[],
  kind: (typeof NOTES)[number],
): Promise<readonly string[]> {
  const keys = wanted.map(({ key }) => key);
  const known = new Set((await store.load({ tenant, agent: null }, 'semantic', kind, keys)).map(({ key }) => key));
  const missing = wanted.filter(({ key }) => !known.has(key));
  const done = missing.length === 0 ? [] : await store.write(tenant, await insertsOf(embedder, missing));
  return missing.flatMap(({ key }, i) => (done[i] === true ? [`the ${kind} of episode ${key} was missing, and was made again`] : []));
}

/** Where an episode comes in between, its note is missing and made again by the next look. */
async function dropOrphans(
  { store }: UpkeepDeps,
  tenant: string,
  page: readonly StoredRecord[],
  kind: (typeof NOTES)[number],
): Promise<readonly string[]> {
  const ids = page.map(({ key }) => key);
  const there = new Set((await store.load({ tenant, agent: null }, 'episodic', 'episode', ids)).map(({ key }) => key));
  const orphans = ids.filter((id) => !there.has(id));
  if (orphans.length > 0) await store.remove({ tenant }, 'semantic', { kinds: [kind], where: { id: orphans } });
  return orphans.map((id) => `the ${kind} of episode ${id}, which was cut off before it was stored, was removed`);
}
