import type { Episode, Scope, Transition } from '@etude/contracts/memory';
import type { EpisodicMemory, MemoryHit, ReadScope, SearchQuery } from '@etude/domain/ports/memory';
import type { SearchEntry } from '@etude/domain/retrieval/entries';
import { episodeEntry, transitionEntry } from '@etude/domain/retrieval/entries';
import { wholeTenant } from '@etude/domain/retrieval/scopes';
import { hitsOf } from './found-hits.js';
import type { MemoryFile } from './memory-file.js';
import type { EmbeddedEntry, SearchIndex } from './search-index.js';
import type { Owner, TenantRows, Values } from './tenant-rows.js';

/** What was prepared outside, to be done within a transaction. */
export type Commit<T = void> = (rows: TenantRows) => T;

type Table = 'transition_record' | 'episode_record';

const LAYER = 'episodic';
const ROWS_PER_RECORD = 1;

/** Episodes in SQLite: each record whole as JSON, with its searchable rows beside it. */
export class SqliteEpisodicMemory implements EpisodicMemory {
  readonly #file: MemoryFile;
  readonly #index: SearchIndex;

  constructor(file: MemoryFile, index: SearchIndex) {
    this.#file = file;
    this.#index = index;
  }

  async storeTransition(transition: Transition): Promise<void> {
    const commit = await this.prepareTransition(transition);
    await this.#file.write(wholeTenant(transition.scope), commit);
  }

  async storeEpisode(episode: Episode): Promise<void> {
    const commit = await this.prepareEpisode(episode);
    await this.#file.write(wholeTenant(episode.scope), commit);
  }

  async prepareTransition(transition: Transition): Promise<Commit> {
    const { scope, id, rolloutId: rollout, attempt } = transition;
    const sql = `INSERT INTO transition_record (tenant, agent, user, id, rollout, attempt, json)
      VALUES (:tenant, :agent, :user, :id, :rollout, :attempt, :json) ON CONFLICT DO NOTHING`;
    const values = { id, rollout, attempt, json: JSON.stringify(transition) };
    return this.#prepare('transition_record', scope, sql, values, [transitionEntry(transition)]);
  }

  async prepareEpisode(episode: Episode): Promise<Commit> {
    const { scope, id, createdAt } = episode;
    const sql = `INSERT INTO episode_record (tenant, agent, user, id, created_at, json)
      VALUES (:tenant, :agent, :user, :id, :createdAt, :json) ON CONFLICT DO NOTHING`;
    return this.#prepare('episode_record', scope, sql, { id, createdAt, json: JSON.stringify(episode) }, [episodeEntry(episode)]);
  }

  async search(scope: ReadScope, query: SearchQuery): Promise<readonly MemoryHit[]> {
    const target = { file: this.#file, layer: LAYER, rowsPerRecord: ROWS_PER_RECORD } as const;
    return this.#index.search(target, scope, query, (rows, found) =>
      hitsOf(rows, LAYER, found, query, (record, kind) =>
        idOf(rows, kind === 'transition' ? 'transition_record' : 'episode_record', record),
      ),
    );
  }

  async recent(scope: ReadScope, sinceMs: number, limit: number): Promise<readonly Episode[]> {
    return this.#file.read(scope, (rows) =>
      rows
        .all<{ json: string }>(
          `SELECT json FROM episode_record WHERE tenant = :tenant AND created_at >= :sinceMs${rows.within}
           ORDER BY created_at DESC, id DESC LIMIT :limit`,
          { sinceMs, limit: Math.max(0, limit) },
        )
        .map((row) => JSON.parse(row.json) as Episode),
    );
  }

  async transitions(scope: ReadScope, rolloutId: string): Promise<readonly Transition[]> {
    return this.#file.read(scope, (rows) =>
      rows
        .all<{ json: string }>(
          `SELECT json FROM transition_record WHERE tenant = :tenant AND rollout = :rolloutId${rows.within} ORDER BY attempt, row`,
          { rolloutId },
        )
        .map((row) => JSON.parse(row.json) as Transition),
    );
  }

  /** A record that is known costs no embedding. */
  async #prepare(table: Table, scope: Scope, sql: string, values: Values, entries: readonly SearchEntry[]): Promise<Commit> {
    const known = await this.#file.read(wholeTenant(scope), (rows) => rowOf(rows, table, String(values.id)));
    if (known !== undefined) return () => undefined;
    const embedded: readonly EmbeddedEntry[] = await this.#index.embed(entries);
    return (rows) => {
      const owner: Owner = rows.ownerOf(scope);
      const { changes, row } = rows.run(sql, { ...values, ...owner });
      if (changes === 1) this.#index.insert(rows, LAYER, owner, row, embedded);
    };
  }
}

function rowOf(rows: TenantRows, table: Table, id: string): number | undefined {
  return rows.all<{ row: number }>(`SELECT row FROM ${table} WHERE tenant = :tenant AND id = :id`, { id })[0]?.row;
}

function idOf(rows: TenantRows, table: Table, row: number): string {
  return rows.all<{ id: string }>(`SELECT id FROM ${table} WHERE tenant = :tenant AND row = :row`, { row })[0]?.id ?? '';
}
