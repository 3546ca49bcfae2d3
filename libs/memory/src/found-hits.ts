import type { MemoryHit, SearchQuery } from '@etude/domain/ports/memory';
import type { Found, Layer } from './search-index.js';
import type { TenantRows } from './tenant-rows.js';

interface ShownRow {
  readonly kind: string;
  readonly title: string;
  readonly text: string;
  readonly sources: string;
  readonly createdAt: number;
  readonly agent: string;
}

/** What search answers for transitions, summaries, reflections and facts; `idOf` names the record of a hit. */
export function hitsOf(
  rows: TenantRows,
  layer: Layer,
  found: readonly Found[],
  query: SearchQuery,
  idOf: (record: number, kind: string) => string,
): MemoryHit[] {
  return found.map(({ id, record, similarity, score, explanation }) => {
    const { sources, ...shown } = loadShown(rows, id);
    const hit = { id: idOf(record, shown.kind), layer, ...shown, sources: JSON.parse(sources) as string[], similarity, score };
    return query.explain ? { ...hit, explanation } : hit;
  });
}

function loadShown(rows: TenantRows, id: number): ShownRow {
  const row = rows.all<ShownRow>(
    `SELECT entry.kind AS kind, title, text, sources, created_at AS createdAt, name AS agent
     FROM entry JOIN entry_text ON entry_text.id = entry.id JOIN principal ON principal.id = entry.agent WHERE entry.tenant = :tenant AND entry.id = :id`,
    { id },
  )[0];
  if (row === undefined) throw new Error(`entry ${id} vanished within one snapshot`);
  return row;
}
