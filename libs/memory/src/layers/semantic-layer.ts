import { EtudeError } from '@etude/contracts/errors';
import { type DocumentChunk, type DocumentRecord, Fact, type Scope } from '@etude/contracts/memory';
import { isCurrent } from '@etude/domain/facts/fact-changes';
import { factId } from '@etude/domain/facts/fact-keys';
import type { ChatModel } from '@etude/domain/ports/model';
import type { MemoryHit, ReadScope, SemanticMemory } from '@etude/domain/ports/memory';
import { requireOwn, requireScope, wholeTenant } from '@etude/domain/retrieval/scopes';
import type { LayerQuery, StoredFact } from '../memory.js';
import type { StoredRecord } from '../record-store.js';
import { markApplied, wasApplied } from './repeats.js';
import { type LayerDeps, OwnerTurns, untilTaken } from './records.js';
import { hitOf, searchLayer } from './memory-search.js';
import { embedTexts, indexedTextsOf } from './indexed-texts.js';
import { AccessCounts, type LogFailure } from './fact-access.js';
import { PairJudge } from './fact-judge.js';
import { factOfRecord, factRecord, historyOf, knownFact, LAYER, RELATED_MIN } from './fact-records.js';
import { listDocuments, removeDocument, storeDocument, wholeDocument } from './documents.js';
import { type FactWrite, mergeDuplicates, type MergeReport, notedFactId, takeFact, type TakenFact } from './fact-writes.js';

export interface SemanticOptions {
  /** Decides which similar facts contradict each other; without it both stay, unless they name one subject. */
  readonly judge?: ChatModel;
  /** Logs failures of work in the background; by default nothing is logged. */
  readonly log?: LogFailure;
}

/** Facts that one new fact is asked about at most. */
const OPEN_MAX = 4;

/** Facts, what was noted of episodes, and documents. A fact of two users is two records, so that neither sees the other's. */
export class RecordSemanticLayer implements SemanticMemory {
  readonly #deps: LayerDeps;
  readonly #access: AccessCounts;
  readonly #turns = new OwnerTurns();
  readonly #judge: PairJudge | null;

  constructor(deps: LayerDeps, { log = () => undefined, judge }: SemanticOptions = {}) {
    this.#deps = deps;
    this.#access = new AccessCounts(deps.store, log);
    this.#judge = judge === undefined ? null : new PairJudge(deps.store, judge, log);
  }

  async applyFacts(tenant: string, unitId: string, facts: readonly Fact[]): Promise<{ added: number; reinforced: number }> {
    const none = { added: 0, reinforced: 0 };
    if (await this.wasApplied(tenant, unitId)) return none;
    facts.forEach(({ scope }) => requireOwn(tenant, scope));
    const told = facts.map(named);
    const indexed = await embedTexts(
      this.#deps.embedder,
      told.map(({ text }) => text),
    );
    let added = 0;
    for (const [at, fact] of told.entries()) {
      const write = { writeId: `${unitId}#${at}`, fact, indexed: indexed[at]!, note: false };
      if ((await this.#take(write)).isAdded) added += 1;
    }
    const at = Math.max(0, ...told.map(({ createdAt }) => createdAt));
    const [noted] = await this.#deps.store.write(tenant, [markApplied(LAYER, scopeOfUnit(tenant, told), unitId, at)]);
    return noted ? { added, reinforced: facts.length - added } : none;
  }

  async wasApplied(tenant: string, unitId: string): Promise<boolean> {
    return wasApplied(this.#deps.store, tenant, LAYER, unitId);
  }

  /** Each `writeId` once. The same words reinforce; a new fact of the same subject supersedes. */
  async store(writeId: string, told: Fact): Promise<StoredFact> {
    const fact = named(told);
    requireScope(wholeTenant(fact.scope));
    if (await this.wasApplied(fact.scope.tenant, writeId)) return this.#unchanged(writeId, fact);
    const [indexed] = await embedTexts(this.#deps.embedder, [fact.text]);
    const taken = await this.#take({ writeId, fact, indexed: indexed!, note: true });
    return { fact: taken.fact, outcome: taken.outcome, replaced: taken.replaced };
  }

  /** Facts, summaries, reflections and chunks of documents; without `kinds`, all of them. */
  async search(scope: ReadScope, query: LayerQuery): Promise<readonly MemoryHit[]> {
    return (await searchLayer(this.#deps, scope, LAYER, query)).map((found) => hitOf(found, query));
  }

  async get(scope: ReadScope, id: string): Promise<Fact | null> {
    const record = await this.#record(scope, id);
    return record === null ? null : factOfRecord(record);
  }

  /** What is true now and not archived, newest first. */
  async list(scope: ReadScope, limit: number): Promise<readonly Fact[]> {
    requireScope(scope);
    if (!(limit > 0)) return [];
    const found = await this.#deps.store.find(scope, LAYER, { kinds: ['fact'], shown: true }, { order: 'newest', limit });
    return found.map(factOfRecord);
  }

  /** The fact and those that it took the place of, newest first. */
  async history(scope: ReadScope, id: string): Promise<readonly Fact[]> {
    return historyOf(this.#deps.store, requireScope(scope), id);
  }

  /** @throws EtudeError NOT_FOUND, INVALID_ARGUMENT */
  async update(scope: ReadScope, id: string, change: { readonly text?: string; readonly confidence?: number }): Promise<Fact> {
    return untilTaken(`fact ${id}`, async () => {
      const record = await this.#record(scope, id);
      if (record === null) throw new EtudeError('NOT_FOUND', `there is no fact ${JSON.stringify(id)}; search for it, or store it`);
      const { fact, takenInOrder } = knownFact(record, 0);
      // A fact with other words was told by the person who changed it, and no longer learned.
      const isReworded = change.text !== undefined && change.text !== fact.text;
      const changed = checked({ ...fact, ...change, ...(isReworded ? { source: 'told' } : {}), updatedAt: this.#deps.clock.now() });
      const next = factRecord(changed, takenInOrder);
      const { revision } = record;
      const isSameText = changed.text === fact.text;
      const kept = isSameText ? { ...next, shown: record.shown, fields: record.fields } : next;
      const [done] = await this.#deps.store.write(scope.tenant, [
        isSameText
          ? { do: 'update', record: kept, revision }
          : { do: 'replace', record: kept, indexed: await embedTexts(this.#deps.embedder, indexedTextsOf(kept)), revision },
      ]);
      return done ? changed : null;
    });
  }

  /** Adds one to each, behind the caller's back; lost counts are no error. */
  async countAccess(scope: ReadScope, ids: readonly string[]): Promise<void> {
    this.#access.add(requireScope(scope), ids);
  }

  /** The same document again changes nothing. Another content under its name replaces the old one, chunk by chunk. */
  async storeDocument(document: DocumentRecord, chunks: readonly DocumentChunk[], signal?: AbortSignal) {
    return storeDocument(this.#deps, document, chunks, signal);
  }

  async documents(scope: ReadScope, page: { readonly limit: number; readonly afterKey?: string }): Promise<readonly DocumentRecord[]> {
    return listDocuments(this.#deps.store, scope, page);
  }

  /** null where a chunk is missing, or one of an older content is left. */
  async wholeDocument(scope: DocumentRecord['scope'], id: string): Promise<DocumentRecord | null> {
    return wholeDocument(this.#deps.store, scope, id);
  }

  async removeDocument(scope: ReadScope, id: string): Promise<boolean> {
    return removeDocument(this.#deps.store, scope, id);
  }

  /** Brings together what was written in the same instant, and so was not seen; `since`: only facts made from then on. */
  async mergeDuplicates(scope: ReadScope, options: { readonly since?: number; readonly signal?: AbortSignal } = {}): Promise<MergeReport> {
    return mergeDuplicates(this.#deps, scope, options);
  }

  /** Waits for what goes on behind the backs of callers. Call it before the store is closed. */
  async close(): Promise<void> {
    await this.#judge?.settle();
    await this.#access.flush();
  }

  /** One after the other for each owner: in one process nobody is in another's way. */
  async #take(write: FactWrite): Promise<TakenFact> {
    const taken = await this.#turns.take(write.fact.scope, () => takeFact(this.#deps, write));
    const { fact } = taken;
    const open = taken.isAdded && isCurrent(fact) ? taken.undecided.filter(({ similarity }) => similarity >= RELATED_MIN) : [];
    this.#judge?.offer(
      fact.scope,
      open
        .slice(0, OPEN_MAX)
        .map((known) => ({ scope: fact.scope, knownId: known.fact.id, freshId: fact.id, known: known.fact.text, fresh: fact.text })),
    );
    return taken;
  }

  /** @throws EtudeError ALREADY_EXISTS where another owner used the write id; that owner's fact isn't shown */
  async #unchanged(writeId: string, fact: Fact): Promise<StoredFact> {
    const { tenant, agent, user } = fact.scope;
    const stored = await this.get(wholeTenant(fact.scope), (await notedFactId(this.#deps.store, tenant, writeId)) ?? fact.id);
    if (stored !== null && (stored.scope.agent !== agent || stored.scope.user !== user))
      throw new EtudeError('ALREADY_EXISTS', 'this write was used for a fact of another owner; use a new id for it');
    return { fact: stored ?? fact, outcome: 'unchanged', replaced: [] };
  }

  async #record(scope: ReadScope, id: string): Promise<StoredRecord | null> {
    return (await this.#deps.store.load(requireScope(scope), LAYER, 'fact', [id]))[0] ?? null;
  }
}

/** With the id that its text gives. @throws EtudeError INVALID_ARGUMENT */
function named(told: Fact): Fact {
  const fact = checked(told);
  return { ...fact, id: factId(fact.scope, fact.text) };
}

/** @throws EtudeError INVALID_ARGUMENT */
function checked(fact: Fact): Fact {
  const parsed = Fact.safeParse(fact);
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  throw new EtudeError('INVALID_ARGUMENT', `a fact can't be stored like this: ${wrong}`);
}

function scopeOfUnit(tenant: string, facts: readonly Fact[]): Scope {
  return facts[0]?.scope ?? { tenant, agent: 'consolidation', user: null };
}
