import type { Fact } from '@etude/contracts/memory';
import type { MemoryHit, ReadScope, SearchQuery, SemanticMemory } from '@etude/domain/ports/memory';
import { factEntry } from '@etude/domain/retrieval/entries';
import { reinforce } from '@etude/domain/retrieval/reinforce';
import { hitsOf } from './found-hits.js';
import type { MemoryFile } from './memory-file.js';
import type { EmbeddedEntry, SearchIndex } from './search-index.js';
import type { Owner, TenantRows } from './tenant-rows.js';

const LAYER = 'semantic';
const ROWS_PER_RECORD = 1;

/** Facts in SQLite. A fact that two users told is two records, so that neither sees the other's. */
export class SqliteSemanticMemory implements SemanticMemory {
  readonly #file: MemoryFile;
  readonly #index: SearchIndex;

  constructor(file: MemoryFile, index: SearchIndex) {
    this.#file = file;
    this.#index = index;
  }

  async applyFacts(tenant: string, unitId: string, facts: readonly Fact[]): Promise<{ added: number; reinforced: number }> {
    const none = { added: 0, reinforced: 0 };
    if (await this.wasApplied(tenant, unitId)) return none;
    const embedded = await this.#index.embed(facts.map(factEntry));
    return this.#file.write({ tenant, agent: null }, (rows) => {
      if (!rows.markApplied('facts', unitId)) return none;
      const added = facts.filter((fact, i) => this.#apply(rows, fact, embedded.slice(i, i + 1))).length;
      return { added, reinforced: facts.length - added };
    });
  }

  async wasApplied(tenant: string, unitId: string): Promise<boolean> {
    return this.#file.read({ tenant, agent: null }, (rows) => rows.wasApplied('facts', unitId));
  }

  async search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]> {
    return this.#index.search({ file: this.#file, layer: LAYER, rowsPerRecord: ROWS_PER_RECORD }, scope, query, (rows, found) =>
      hitsOf(rows, LAYER, found, query, (record) => idOf(rows, record)),
    );
  }

  async list(scope: ReadScope, limit: number): Promise<readonly Fact[]> {
    return this.#file.read(scope, (rows) =>
      rows
        .all<{ json: string }>(
          `SELECT json FROM fact_record WHERE tenant = :tenant${rows.within} ORDER BY created_at DESC, id DESC, user LIMIT :limit`,
          { limit: Math.max(0, limit) },
        )
        .map((row) => JSON.parse(row.json) as Fact),
    );
  }

  /** Whether the fact is new. */
  #apply(rows: TenantRows, fact: Fact, embedded: readonly EmbeddedEntry[]): boolean {
    const owner = rows.ownerOf(fact.scope);
    const known = rows.all<{ row: number; json: string }>(
      'SELECT row, json FROM fact_record WHERE tenant = :tenant AND agent = :agent AND user = :user AND id = :id',
      { ...owner, id: fact.id },
    )[0];
    if (known === undefined) this.#add(rows, owner, fact, embedded);
    else this.#reinforce(rows, known.row, reinforce(JSON.parse(known.json) as Fact, fact));
    return known === undefined;
  }

  #add(rows: TenantRows, owner: Owner, fact: Fact, embedded: readonly EmbeddedEntry[]): void {
    const { row } = rows.run(
      `INSERT INTO fact_record (tenant, agent, user, id, created_at, json)
       VALUES (:tenant, :agent, :user, :id, :createdAt, :json)`,
      { ...owner, id: fact.id, createdAt: fact.createdAt, json: JSON.stringify(fact) },
    );
    this.#index.insert(rows, LAYER, owner, row, embedded);
  }

  #reinforce(rows: TenantRows, row: number, fact: Fact): void {
    rows.run('UPDATE fact_record SET json = :json WHERE tenant = :tenant AND row = :row', { row, json: JSON.stringify(fact) });
    this.#index.update(rows, LAYER, row, { shown: true, worth: fact.confidence, createdAt: fact.createdAt, sources: fact.episodes });
  }
}

function idOf(rows: TenantRows, row: number): string {
  return rows.all<{ id: string }>('SELECT id FROM fact_record WHERE tenant = :tenant AND row = :row', { row })[0]?.id ?? '';
}
