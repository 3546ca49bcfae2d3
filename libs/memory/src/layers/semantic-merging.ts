import type { Fact } from '@etude/contracts/memory';
import { planFact } from '@etude/domain/facts/fact-plan';
import type { ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { Change, IndexedText, StoredRecord } from '../record-store.js';
import { untilTaken } from './collisions.js';
import type { LayerDeps } from './layer-deps.js';
import { factOfRecord, LAYER } from './semantic-records.js';
import { similarFacts, surroundingFacts } from './semantic-surroundings.js';
import { changesOf } from './semantic-writes.js';
import { embedTexts } from './text-vectors.js';
import { everyRecord } from './every-record.js';

export interface MergeReport {
  readonly looked: number;
  /** Records that went into another one of the same fact. */
  readonly merged: number;
  readonly superseded: number;
}

const PAGE = 64;

/** Looks at each current fact once more, as if it had just been told: what was written in the same instant finds itself. */
export async function mergeDuplicates(
  deps: LayerDeps,
  scope: ReadScope,
  { since, signal }: { readonly since?: number; readonly signal?: AbortSignal } = {},
): Promise<MergeReport> {
  requireScope(scope);
  const filter = { kinds: ['fact'], shown: true, ...(since === undefined ? {} : { createdSince: since }) } as const;
  const report = { looked: 0, merged: 0, superseded: 0 };
  let page: StoredRecord[] = [];
  const lookAtPage = async () => {
    const indexed = await embedTexts(
      deps.embedder,
      page.map(({ text }) => text),
      signal,
    );
    for (const [at, record] of page.entries()) {
      signal?.throwIfAborted();
      const { merged, superseded } = await lookAgain(deps, factOfRecord(record), indexed[at]!);
      report.looked += 1;
      report.merged += merged;
      report.superseded += superseded;
    }
    page = [];
  };
  for await (const record of everyRecord(deps.store, scope, LAYER, filter, { size: PAGE })) {
    page.push(record);
    if (page.length === PAGE) await lookAtPage();
  }
  await lookAtPage();
  return report;
}

async function lookAgain(deps: LayerDeps, fact: Fact, indexed: IndexedText): Promise<{ merged: number; superseded: number }> {
  const similar = await similarFacts(deps, fact.scope, indexed);
  const writeId = `itself ${fact.id}`;
  return untilTaken(`fact ${fact.id}`, async () => {
    const around = await surroundingFacts(deps, fact, similar);
    const known = around.map((one) => (one.fact.id === fact.id ? { ...one, taken: new Set([...one.taken, writeId]) } : one));
    const self = known.find((one) => one.fact.id === fact.id);
    if (self === undefined || !self.record.shown) return { merged: 0, superseded: 0 };
    const plan = planFact({ fact: self.fact, writeId }, known);
    const changes: readonly Change[] = await changesOf(deps, plan);
    if (changes.length > 0 && (await deps.store.write(fact.scope.tenant, changes)).includes(false)) return null;
    const left = plan.changes.filter((change) => !change.known.fact.supersededBy && change.fact.supersededBy !== undefined).length;
    const superseded = plan.replaced.length + (plan.kept?.supersededBy === undefined ? 0 : 1);
    return { merged: left - superseded, superseded };
  });
}
