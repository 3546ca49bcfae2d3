import { type Change, type Fields, type Model, type Owners, RECORD_TEXTS_MAX, type RecordFilter } from '../record-store.js';
import { bodyValues, deleteFields, filterCondition, insertFields, kindCode, kindCodes, layerCode, layerCondition } from './record-rows.js';
import type { TenantRows, Values } from './tenant-rows.js';
import { deleteVectors, insertVectors, updateVectors, type VectorBytes, vectorBytes, type VectorTraits } from './vectors.js';
import { deleteWords, insertWords } from './words.js';
import { EtudeError } from '@etude/contracts/errors';
import type { MemoryLayer } from '@etude/contracts/task';
import { type TermCounts, termCounts } from '@etude/domain/retrieval/words';
import { requireOwn } from '@etude/domain/ports/memory';
import type { StoreFile } from './store-file.js';
import { setTimeout as sleep } from 'node:timers/promises';

/** A change with everything that can be computed outside the transaction. */
interface PreparedChange {
  readonly change: Change;
  readonly kind: number;
  readonly vectors: ReadonlyArray<VectorBytes | null>;
  readonly terms: TermCounts;
}

/** Thrown to roll back a list that contains a stale change. */
export class StaleChange extends Error {}

/** @throws EtudeError PERMISSION_DENIED, INVALID_ARGUMENT, EMBEDDING_LENGTH_WRONG, before anything is written */
export function prepareChange(tenant: string, change: Change, model: Model): PreparedChange {
  const { record } = change;
  requireOwn(tenant, record.scope);
  const kind = kindCode(record.layer, record.kind);
  const indexed = change.do === 'update' ? [] : change.indexed;
  if (indexed.length > RECORD_TEXTS_MAX) {
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `record ${record.key} has ${indexed.length} searchable texts; at most ${RECORD_TEXTS_MAX} are allowed`,
    );
  }
  const vectors = indexed.map(({ vector }) => vectorBytes(vector, model));
  return { change, kind, vectors, terms: termCounts(indexed.map(({ text }) => text)) };
}

/** Applies the changes of one transaction. @throws StaleChange */
export function applyChanges(rows: TenantRows, model: number, changes: readonly PreparedChange[]): boolean[] {
  const late: Late = { words: [], sizes: new Map() };
  const answers = changes.map((prepared) => {
    const { change } = prepared;
    if (change.do === 'insert') return insert(rows, model, prepared, late);
    const known = knownRecord(rows, prepared.kind, change.record.key);
    if (known?.revision !== change.revision) throw new StaleChange();
    updateRecord(rows, known, prepared);
    if (change.do === 'replace') replaceTexts(rows, model, known, prepared, late);
    else if (movesVectors(rows, known, prepared)) updateVectors(rows, known.id, known.texts, traitsOf(rows, prepared));
    return true;
  });
  writeLate(rows, late);
  return answers;
}

interface KnownRecord {
  readonly id: number;
  readonly revision: number;
  readonly texts: number;
  readonly words: number;
  readonly agent: number;
  readonly user: number;
  readonly worth: number;
  readonly createdAt: number;
  readonly shown: number;
  readonly fields: string;
}

/** `kind` is the number of the kind in the file. */
export function knownRecord(rows: TenantRows, kind: number, key: string): KnownRecord | undefined {
  return rows.all<KnownRecord>(
    `SELECT record.id AS id, revision, texts, words, agent, user, worth, created_at AS createdAt, shown, fields
     FROM record CROSS JOIN record_body ON record_body.id = record.id
     WHERE record.tenant = :tenant AND kind = :kind AND record_key = :key`,
    { kind, key },
  )[0];
}

function insert(rows: TenantRows, model: number, prepared: PreparedChange, late: Late): boolean {
  const { kind, vectors, terms, change } = prepared;
  const { record } = change;
  const { key, createdAt, worth, shown } = record;
  const owner = rows.ownerOf(record.scope);
  const { changes, row: id } = rows.run(
    `INSERT INTO record (tenant, kind, record_key, agent, user, created_at, worth, shown, revision, texts, words)
     VALUES (:tenant, :kind, :key, :agent, :user, :createdAt, :worth, :shown, 1, :texts, :words) ON CONFLICT DO NOTHING`,
    { ...owner, kind, key, createdAt, worth, shown: shown ? 1 : 0, texts: vectors.length, words: terms.words },
  );
  if (changes === 0) return false;
  rows.run(
    `INSERT INTO record_body (id, tenant, fields, title, text, sources, body)
     VALUES (:id, :tenant, :fields, :title, :text, :sources, :body)`,
    { id, ...bodyValues(record) },
  );
  insertFields(rows, id, record.fields);
  addTexts(rows, model, id, prepared, late);
  return true;
}

function updateRecord(rows: TenantRows, { id, fields }: KnownRecord, { change: { record } }: PreparedChange): void {
  const { createdAt, worth, shown } = record;
  rows.run(
    `UPDATE record SET agent = :agent, user = :user, created_at = :createdAt, worth = :worth, shown = :shown, revision = revision + 1
     WHERE tenant = :tenant AND id = :id`,
    { id, ...rows.ownerOf(record.scope), createdAt, worth, shown: shown ? 1 : 0 },
  );
  const body = bodyValues(record);
  rows.run(
    `UPDATE record_body SET fields = :fields, title = :title, text = :text, sources = :sources, body = :body
     WHERE tenant = :tenant AND id = :id`,
    { id, ...body },
  );
  if (fields === body.fields) return;
  deleteFields(rows, id, JSON.parse(fields) as Fields);
  insertFields(rows, id, record.fields);
}

function replaceTexts(rows: TenantRows, model: number, known: KnownRecord, prepared: PreparedChange, late: Late): void {
  removeTexts(rows, prepared.change.record.layer, known, late);
  rows.run('UPDATE record SET texts = :texts, words = :words WHERE tenant = :tenant AND id = :id', {
    id: known.id,
    texts: prepared.vectors.length,
    words: prepared.terms.words,
  });
  addTexts(rows, model, known.id, prepared, late);
}

/**
 * What a transaction writes together at its end: words, and the growth of each layer. FTS5 writes a segment whenever another table is written
 * in between. One segment per record takes three times as long as one segment per transaction.
 */
interface Late {
  readonly words: Array<() => void>;
  readonly sizes: Map<MemoryLayer, LayerGrowth>;
}

interface LayerGrowth {
  readonly worded: number;
  readonly records: number;
  readonly texts: number;
}

function addTexts(rows: TenantRows, model: number, id: number, prepared: PreparedChange, late: Late): void {
  const { vectors, terms, change } = prepared;
  const { layer } = change.record;
  if (vectors.length > 0) insertVectors(rows, model, id, traitsOf(rows, prepared), vectors);
  resize(late, layer, vectors.length, terms.words, 1);
  if (terms.words > 0) late.words.push(() => insertWords(rows, layer, id, terms));
}

function removeTexts(
  rows: TenantRows,
  layer: MemoryLayer,
  { id, texts, words }: Pick<KnownRecord, 'id' | 'texts' | 'words'>,
  late: Late,
): void {
  deleteVectors(rows, id, texts);
  resize(late, layer, texts, words, -1);
  if (words > 0) late.words.push(() => deleteWords(rows, id));
}

function traitsOf(rows: TenantRows, { kind, change: { record } }: PreparedChange): VectorTraits {
  const { layer, worth, createdAt, shown, scope } = record;
  return { layer, worth, createdAt, kind: shown ? kind : -kind, ...rows.ownerOf(scope) };
}

function movesVectors(rows: TenantRows, known: KnownRecord, prepared: PreparedChange): boolean {
  const { agent, user, worth, createdAt, kind } = traitsOf(rows, prepared);
  const same = known.agent === agent && known.user === user && known.worth === worth && known.createdAt === createdAt;
  return known.texts > 0 && !(same && (known.shown === 1) === kind > 0);
}

function resize({ sizes }: Late, layer: MemoryLayer, texts: number, words: number, by: 1 | -1): void {
  if (texts === 0) return;
  const size = sizes.get(layer) ?? { worded: 0, records: 0, texts: 0 };
  sizes.set(layer, { worded: size.worded + (words > 0 ? by : 0), records: size.records + by, texts: size.texts + by * texts });
}

function writeLate(rows: TenantRows, { words, sizes }: Late): void {
  for (const write of words) write();
  for (const [layer, growth] of sizes)
    rows.run(
      `INSERT INTO layer_size (tenant, layer, worded, records, texts) VALUES (:tenant, :layer, :worded, :records, :texts)
       ON CONFLICT DO UPDATE SET worded = worded + :worded, records = records + :records, texts = texts + :texts`,
      { layer: layerCode(layer), ...growth },
    );
}

/** Records per transaction. Small, so that others can write in between. */
const BATCH = 200;
/** The pause between transactions, in which this process renews its locks and others write. */
const PAUSE_MS = 5;

export async function removeRecords(file: StoreFile, owners: Owners, layer: MemoryLayer, filter: RecordFilter): Promise<number> {
  if (kindCodes(layer, filter.kinds).length === 0) return 0;
  const { sql, values } = filterCondition(filter);
  const condition = `${layerCondition(layer, filter)}${sql}`;
  let removed = 0;
  for (;;) {
    const batch = await file.write(owners, (rows) => removeBatch(rows, layer, condition, values));
    removed += batch;
    if (batch < BATCH) break;
    await sleep(PAUSE_MS);
  }
  await file.write(owners, forgetNames);
  return removed;
}

function removeBatch(rows: TenantRows, layer: MemoryLayer, condition: string, values: Values): number {
  const doomed = rows.all<Pick<KnownRecord, 'id' | 'texts' | 'words' | 'fields'>>(
    `SELECT record.id AS id, texts, words, fields FROM record CROSS JOIN record_body ON record_body.id = record.id
     WHERE ${condition}${rows.within} LIMIT ${BATCH}`,
    values,
  );
  const late: Late = { words: [], sizes: new Map() };
  for (const record of doomed) {
    removeTexts(rows, layer, record, late);
    deleteFields(rows, record.id, JSON.parse(record.fields) as Fields);
    rows.run('DELETE FROM record_body WHERE tenant = :tenant AND id = :id', { id: record.id });
    rows.run('DELETE FROM record WHERE tenant = :tenant AND id = :id', { id: record.id });
  }
  writeLate(rows, late);
  return doomed.length;
}

function forgetNames(rows: TenantRows): void {
  rows.run(
    `DELETE FROM principal WHERE tenant = :tenant AND id NOT IN (SELECT agent FROM record WHERE tenant = :tenant
       UNION SELECT user FROM record WHERE tenant = :tenant)`,
  );
  rows.run('DELETE FROM layer_size WHERE tenant = :tenant AND records = 0');
  rows.run('DELETE FROM tenant WHERE id = :tenant AND NOT EXISTS (SELECT 1 FROM record WHERE tenant = :tenant)');
}
