import { gzipSync } from 'node:zlib';
import type { Owners, RecordStore, StoredRecord } from '../../record-store.js';
import { LAYERS, OWNED_KINDS } from './owned-records.js';
import { EXPORT_VERSION, PACKED_OVER_BYTES } from './line-format.js';
import type { ExportHeader } from './line-format.js';

/**
 * A header, then one record per line, without vectors: they are made anew by whoever imports it. Marks of erasures stay here.
 *
 * One page of records is held at a time, and of that one line. What is written meanwhile may be in it or not.
 */
export async function* exportRecords(store: RecordStore, owners: Owners, signal?: AbortSignal): AsyncGenerator<string> {
  const header: ExportHeader = { etude: 'memory', version: EXPORT_VERSION, tenant: owners.tenant };
  yield JSON.stringify(header);
  for (const layer of LAYERS) {
    const kinds = OWNED_KINDS.filter((one) => one.layer === layer).map(({ kind }) => kind);
    for await (const page of store.each(owners, layer, { kinds })) {
      signal?.throwIfAborted();
      for (const record of page) yield lineOf(record);
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
