import { gzipSync } from 'node:zlib';
import type { MemoryLayer } from '@etude/contracts/task';
import type { Owners, RecordKind, RecordStore, StoredRecord } from '../../record-store.js';
import { refuseHiddenTests, TESTED_KINDS } from './hidden-tests.js';
import { LAYERS, OWNED_KINDS } from './owned-records.js';
import { EXPORT_VERSION, PACKED_OVER_BYTES } from './line-format.js';
import type { ExportHeader } from './line-format.js';

export interface ExportOptions {
  /** Default all. */
  readonly layers?: readonly MemoryLayer[];
  /** Whether tests may be in it that only reviewers read; else there is no export of what has some. Default true. */
  readonly hiddenTests?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * A header, then one record per line, without vectors: they are made anew by whoever imports it. Marks of erasures stay here.
 *
 * One page of records is held at a time, and of that one line. What is written meanwhile may be in it or not.
 *
 * @throws EtudeError PERMISSION_DENIED for tests that may not be in it, before the first line where they are there by then
 */
export async function* exportRecords(
  store: RecordStore,
  owners: Owners,
  { layers = LAYERS, hiddenTests = true, signal }: ExportOptions = {},
): AsyncGenerator<string> {
  if (!hiddenTests)
    for await (const record of recordsOf(store, owners, layers, (layer) => TESTED_KINDS[layer], signal)) refuseHiddenTests(record);
  const header: ExportHeader = { etude: 'memory', version: EXPORT_VERSION, tenant: owners.tenant };
  yield JSON.stringify(header);
  for await (const record of recordsOf(store, owners, layers, ownedKinds, signal)) {
    if (!hiddenTests) refuseHiddenTests(record);
    yield lineOf(record);
  }
}

const ownedKinds = (layer: MemoryLayer) => OWNED_KINDS.filter((one) => one.layer === layer).map(({ kind }) => kind);

async function* recordsOf(
  store: RecordStore,
  owners: Owners,
  layers: readonly MemoryLayer[],
  kindsOf: (layer: MemoryLayer) => readonly RecordKind[],
  signal?: AbortSignal,
): AsyncGenerator<StoredRecord> {
  for (const layer of layers) {
    const kinds = kindsOf(layer);
    if (kinds.length === 0) continue;
    for await (const page of store.each(owners, layer, { kinds })) {
      signal?.throwIfAborted();
      yield* page;
    }
  }
}

function lineOf({ scope: { agent, user }, layer, kind, key, ...record }: StoredRecord): string {
  const { createdAt, worth, shown, fields, title, text, sources, body } = record;
  const line = { layer, kind, key, agent, user, createdAt, worth, shown, fields, title, text, sources, body };
  const plain = JSON.stringify(line);
  if (plain.length <= PACKED_OVER_BYTES) return plain;
  return JSON.stringify({ layer, kind, key, packed: gzipSync(plain).toString('base64') });
}
