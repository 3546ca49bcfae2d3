import type { MemoryLayer } from '@etude/contracts/task';
import type { RecordField, RecordFilter, RecordKind } from '../record-store.js';

/** Numbers in the file for what is a name in the code. Never reuse or change one. */
const LAYERS: Readonly<Record<MemoryLayer, number>> = { episodic: 1, semantic: 2, procedural: 3 };

const KINDS: Readonly<Record<MemoryLayer, Readonly<Partial<Record<RecordKind, number>>>>> = {
  episodic: { transition: 1, episode: 2, applied: 3 },
  semantic: { fact: 11, summary: 12, reflection: 13, document: 14, chunk: 15, applied: 16, erasure: 17 },
  procedural: { skill: 21, applied: 22 },
};

const FIELDS: Readonly<Record<RecordField, number>> = {
  id: 1,
  rollout: 2,
  name: 3,
  status: 4,
  digest: 5,
  fingerprint: 6,
  category: 7,
  skill: 8,
  document: 9,
  subject: 10,
};

const KIND_NAMES = new Map<number, RecordKind>(
  Object.values(KINDS).flatMap((kinds) => Object.entries(kinds).map(([name, code]) => [code, name as RecordKind] as const)),
);

export const layerCode = (layer: MemoryLayer): number => LAYERS[layer];
export const fieldCode = (field: RecordField): number => FIELDS[field];
export const kindName = (code: number): RecordKind => KIND_NAMES.get(code) ?? 'fact';

/** Of a kind that the layer does not have: a number that no record has. */
export function kindCode(layer: MemoryLayer, kind: RecordKind): number {
  return KINDS[layer][kind] ?? 0;
}

/** Those of the layer that a filter lets through. */
export function kindCodes(layer: MemoryLayer, kinds: RecordFilter['kinds']): readonly number[] {
  if (kinds === undefined) return Object.values(KINDS[layer]);
  return kinds.map((kind) => kindCode(layer, kind)).filter((code) => code > 0);
}
