import { EtudeError } from '@etude/contracts/errors';
import { type DocumentChunk, type DocumentRecord, Fact, type Scope } from '@etude/contracts/memory';
import { factId, subjectKey } from '@etude/domain/facts/fact-plan';
import type { CoveredUnit, MemoryHit, ReadScope, SemanticMemory } from '@etude/domain/ports/memory';
import { requireOwn, requireScope, wholeTenant } from '@etude/domain/ports/memory';
import { isSameOwner } from '@etude/domain/skills/life/skill-life';
import type { LayerQuery } from '../memory.js';
import type { FindPage, RecordStore, StoredRecord } from '../record-store.js';
import { loadNote, markApplied, wasApplied } from './repeats.js';
import { embedTexts, factTexts, type LayerDeps, OwnerTurns, rewriteOf, untilTaken } from './records.js';
import { hitOf, searchLayer } from './memory-search.js';
import { accessCounts, type FactWrite, type LogFailure, takeFact, type TakenFact } from './fact-writes.js';
import { settleFacts, type SettlingDeps, undoDecision, UNSETTLED } from './fact-settling.js';
import { decisionsAbout, factOfRecord, factRecord, historyOf, LAYER, loadFacts } from './fact-records.js';
import { withNeighbours } from './conversations.js';
import { documentOf, storeDocument, wholeDocument } from './documents.js';

export interface SemanticOptions {
  /** Called when new facts wait to be compared, or new turns wait for the extraction of facts. Default: nothing is called. */
  readonly onUnsettled?: (tenant: string) => Promise<void>;
  readonly log?: LogFailure;
}

/** Facts, notes on episodes, and documents; searches also find turns. Two users who tell the same fact get two records. */
export function semanticLayer(deps: LayerDeps, { log = () => undefined, onUnsettled }: SemanticOptions = {}) {
  const { store, embedder } = deps;
  const access = accessCounts(store, log);
  const turns = new OwnerTurns();
  /** Stores the facts of one owner one after another, so that writes of one process don't collide. */
  const take = async (write: FactWrite): Promise<TakenFact> => {
    const taken = await turns.take(write.fact.scope, () => takeFact(deps, write));
    if (taken.isAdded && taken.fact.unsettled !== undefined) await onUnsettled?.(taken.fact.scope.tenant);
    return taken;
  };
  return {
    async appliedAmong(tenant: string, unitIds: readonly string[]): Promise<ReadonlySet<string>> {
      const records = await store.load({ tenant, agent: null }, LAYER, 'applied', unitIds);
      return new Set(records.map(({ key }) => key));
    },
    applyFacts: (tenant: string, unitId: string, facts: readonly Fact[], covered: readonly CoveredUnit[] = []) =>
      applyUnit(deps, take, tenant, { unitId, facts, covered }),
    /** Stores a fact once per `writeId`. The same words reinforce a known fact; a new fact with the same subject supersedes it. */
    async store(writeId: string, told: Fact): Promise<Omit<TakenFact, 'isAdded'>> {
      const fact = named(told);
      const note = await loadNote(store, fact.scope.tenant, LAYER, writeId);
      if (note !== null) return unchanged(store, note, fact);
      const indexed = await embedTexts(embedder, factTexts(fact));
      const { outcome, replaced, fact: kept } = await take({ writeId, fact, indexed, note: true });
      return { fact: kept, outcome, replaced };
    },
    /** Finds facts, summaries, reflections, chunks of documents and turns of conversations; without `kinds`, all of them. */
    async search(scope: ReadScope, query: LayerQuery): Promise<readonly MemoryHit[]> {
      const hits = (await searchLayer(deps, scope, LAYER, query)).map((one) => hitOf(one, query));
      return withNeighbours(store, scope, hits);
    },
    async get(scope: ReadScope, id: string): Promise<Fact | null> {
      return (await loadFacts(store, scope, [id]))[0]?.fact ?? null;
    },
    async about(owner: Scope, category: string, subject: string): Promise<Fact | null> {
      const where = { subject: subjectKey({ scope: owner, category, subject }) };
      const [record] = await store.find(owner, LAYER, { kinds: ['fact'], shown: true, where }, { order: 'newest', limit: 1 });
      return record === undefined ? null : factOfRecord(record);
    },
    /** Current facts that aren't archived, newest first. */
    async list(scope: ReadScope, limit: number): Promise<readonly Fact[]> {
      const found = await store.find(scope, LAYER, { kinds: ['fact'], shown: true }, { order: 'newest', limit });
      return found.map(factOfRecord);
    },
    history: (scope: ReadScope, id: string) => historyOf(store, scope, id),
    decisions: (scope: ReadScope, facts: readonly Fact[]) => decisionsAbout(store, scope, facts),
    /** @throws EtudeError NOT_FOUND, INVALID_ARGUMENT */
    update: (scope: ReadScope, id: string, change: FactChange) => updateFact(deps, scope, id, change),
    unsettled: (tenant: string) => store.count({ tenant }, LAYER, UNSETTLED),
    settle: (tenant: string, settling: SettlingDeps) => settleFacts(deps, tenant, settling),
    undoDecision: (scope: ReadScope, ids: readonly [string, string], by: string) => undoDecision(deps, scope, ids, by),
    /** Adds one to the access count of each fact, in the background. A lost count is no error. */
    countAccess: async (scope: ReadScope, ids: readonly string[]) => access.add(requireScope(scope).tenant, ids),
    /** Storing the same document again changes nothing. New content under the same name replaces the old content. */
    storeDocument: (document: DocumentRecord, chunks: readonly DocumentChunk[], signal?: AbortSignal) =>
      storeDocument(deps, document, chunks, signal),
    documents: async (scope: ReadScope, page: Omit<FindPage, 'order'>): Promise<readonly DocumentRecord[]> =>
      (await store.find(scope, LAYER, { kinds: ['document'] }, { order: 'key', ...page })).map(documentOf),
    wholeDocument: (scope: Scope, id: string) => wholeDocument(store, scope, id),
    /** Waits for background work. Call it before closing the store. */
    close: (): Promise<void> => access.flush(),
  } satisfies SemanticMemory & Record<string, unknown>;
}

async function applyUnit(
  { store, embedder, clock }: LayerDeps,
  take: (write: FactWrite) => Promise<TakenFact>,
  tenant: string,
  { unitId, facts, covered }: { readonly unitId: string; readonly facts: readonly Fact[]; readonly covered: readonly CoveredUnit[] },
): Promise<{ added: number; reinforced: number }> {
  const none = { added: 0, reinforced: 0 };
  if (await wasApplied(store, tenant, LAYER, unitId)) return none;
  facts.forEach(({ scope }) => requireOwn(tenant, scope));
  const told = facts.map(named);
  const texts = told.map(factTexts);
  const indexed = [...(await embedTexts(embedder, texts.flat()))];
  let added = 0;
  for (const [at, fact] of told.entries()) {
    const write = { writeId: `${unitId}#${at}`, fact, indexed: indexed.splice(0, texts[at]!.length), note: false };
    if ((await take(write)).isAdded) added += 1;
  }
  const at = told.length === 0 ? clock.now() : Math.max(...told.map(({ createdAt }) => createdAt));
  const scope = told[0]?.scope ?? covered[0]?.scope ?? { tenant, agent: 'consolidation', user: null };
  // The unit's own note comes last, so that a repeat adds the notes that a crash left out.
  const marks = [...covered, { unitId, scope }].map((unit) => markApplied(LAYER, unit.scope, unit.unitId, at));
  const noted = (await store.write(tenant, marks)).at(-1);
  return noted ? { added, reinforced: facts.length - added } : none;
}

type FactChange = Partial<Pick<Fact, 'text' | 'confidence'>>;

async function updateFact({ store, embedder, clock }: LayerDeps, scope: ReadScope, id: string, change: FactChange): Promise<Fact> {
  return untilTaken(`fact ${id}`, async () => {
    const [known] = await loadFacts(store, scope, [id]);
    if (known === undefined) throw new EtudeError('NOT_FOUND', `there is no fact ${JSON.stringify(id)}; search for it, or store it`);
    const { fact, taken, record } = known;
    // A reworded fact has the source `told`, since its words are now those of the person who changed it.
    const isReworded = change.text !== undefined && change.text !== fact.text;
    const changed = checked({
      ...fact,
      ...change,
      ...(isReworded ? { source: 'told', wordings: undefined, outdated: undefined } : {}),
      updatedAt: clock.now(),
    });
    const { shown, fields } = record;
    const next = { ...factRecord(changed, taken), ...(changed.text === fact.text ? { shown, fields } : {}) };
    const [done] = await store.write(scope.tenant, [await rewriteOf(embedder, record, next)]);
    return done ? changed : null;
  });
}

/** @throws EtudeError ALREADY_EXISTS if another owner used the write id; that owner's fact isn't returned */
async function unchanged(store: RecordStore, { sources }: StoredRecord, fact: Fact): Promise<Omit<TakenFact, 'isAdded'>> {
  const { scope, id } = fact;
  const [known] = await loadFacts(store, wholeTenant(scope), [sources[0] ?? id]);
  if (known !== undefined && !isSameOwner(known.fact.scope, scope))
    throw new EtudeError('ALREADY_EXISTS', 'this write id was used for a fact of another owner; use a new write id');
  return { fact: known?.fact ?? fact, outcome: 'unchanged', replaced: [] };
}

/** The fact with the id derived from its owner and text. @throws EtudeError INVALID_ARGUMENT */
function named(told: Fact): Fact {
  const fact = checked(told);
  return { ...fact, id: factId(fact.scope, fact.text) };
}

/** @throws EtudeError INVALID_ARGUMENT */
function checked(fact: Fact): Fact {
  const parsed = Fact.safeParse(fact);
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  throw new EtudeError('INVALID_ARGUMENT', `the fact is invalid: ${wrong}`);
}
