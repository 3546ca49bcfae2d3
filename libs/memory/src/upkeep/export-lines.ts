import { idOf } from '../layers/memory-search.js';
import { parseBody } from '../layers/records.js';
import { LAYERS, type Owners, RECORD_FIELDS, type RecordKind, type RecordStore, type StoredRecord } from '../record-store.js';
import { walkOwned } from './owned-records.js';
import { EtudeError } from '@etude/contracts/errors';
import { OwnerAgent, OwnerTenant, UserId } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { parsedJson } from '@etude/contracts/json';
import { hasHiddenTests } from '@etude/domain/skills/content-digest';
import { promisify } from 'node:util';
import { gunzip, gzipSync } from 'node:zlib';
import { z } from 'zod';

const EXPORTED_KINDS = [
  'transition',
  'episode',
  'fact',
  'summary',
  'reflection',
  'document',
  'chunk',
  'conversation',
  'turn',
  'skill',
  'shows',
] as const;
/** Kinds whose records may hold tests that only reviewers may read. */
const TESTED_KINDS: readonly RecordKind[] = ['episode', 'skill'];

export interface ExportOptions {
  /** Default: all. */
  readonly layers?: readonly MemoryLayer[];
  /** Whether the export may hold tests that only reviewers may read. False: a record with such tests fails the export. Default true. */
  readonly hiddenTests?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * Yields JSON Lines: a header, then one record per line, lossless and unordered. Vectors are left out, because the import embeds anew. Erasure marks
 * and notes of applied writes aren't exported. Holds one page of records at a time. Records written meanwhile may be missing.
 * @throws EtudeError PERMISSION_DENIED for tests that the export may not contain: before the first line, unless they were written during the export
 */
export async function* exportRecords(
  store: RecordStore,
  owners: Owners,
  { layers = LAYERS, hiddenTests = true, signal }: ExportOptions = {},
): AsyncGenerator<string> {
  if (!hiddenTests)
    for await (const page of walkOwned(store, owners, { kinds: TESTED_KINDS }, { layers, signal })) page.forEach(refuseHiddenTests);
  yield JSON.stringify({ etude: 'memory', version: EXPORT_VERSION, tenant: owners.tenant } satisfies z.input<typeof ExportHeader>);
  for await (const page of walkOwned(store, owners, { kinds: EXPORTED_KINDS }, { layers, signal })) {
    if (!hiddenTests) page.forEach(refuseHiddenTests);
    yield* page.map(lineOf);
  }
}

function lineOf({ scope: { agent, user }, layer, kind, key, ...record }: StoredRecord): string {
  // Earlier versions of Etude refuse lines with this field. An import derives it from the body.
  const { source: _source, ...fields } = record.fields;
  const { createdAt, worth, shown, title, text, sources, body } = record;
  const line = { layer, kind, key, agent, user, createdAt, worth, shown, fields, title, text, sources, body };
  const plain = JSON.stringify(line);
  if (plain.length <= PACKED_OVER_BYTES) return plain;
  return JSON.stringify({ layer, kind, key, packed: gzipSync(plain).toString('base64') });
}

/** @throws EtudeError PERMISSION_DENIED for held-out tests, and for tests made from a task's cases, some of which are hidden */
function refuseHiddenTests(record: StoredRecord): void {
  const { kind, scope } = record;
  if (!TESTED_KINDS.includes(kind)) return;
  const { tests = [], heldOut = [], ...fields } = parseBody<Partial<Skill>>(record).value;
  const mayHide = kind === 'episode' || hasHiddenTests(fields);
  if (heldOut.length === 0 && (tests.length === 0 || !mayHide)) return;
  const message = `The export would contain tests that only reviewers may read: ${kind} ${idOf(record)} of agent "${scope.agent}" has held-out tests, or tests made from the cases of a task. Export with a key that has the role "reviewer", or export only layers that have no tests, for example "semantic".`;
  throw new EtudeError('PERMISSION_DENIED', message);
}

/** Raised when older readers can no longer read the lines. */
const EXPORT_VERSION = 1;
/** A longer line is refused before it is parsed. Even the largest stored bodies are shorter when packed. */
const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** A longer line is compressed. Its base64 is at most a third longer than the compressed bytes. */
const PACKED_OVER_BYTES = 1024 * 1024;
const UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
const KEY_CHARS_MAX = 1_024;

const ExportHeader = z.object({ etude: z.literal('memory'), version: z.number().int().min(1), tenant: OwnerTenant });

export const ExportLine = z.strictObject({
  layer: z.enum(['episodic', 'semantic', 'procedural']),
  kind: z.enum(EXPORTED_KINDS),
  key: z.string().min(1).max(KEY_CHARS_MAX),
  agent: OwnerAgent,
  user: UserId.nullable(),
  createdAt: z.number().int(),
  worth: z.number().min(0).max(1),
  shown: z.boolean(),
  fields: z.partialRecord(z.enum(RECORD_FIELDS), z.union([z.string(), z.array(z.string())])),
  title: z.string(),
  text: z.string(),
  sources: z.array(z.string()),
  /** JSON, byte for byte as stored. */
  body: z.string(),
});

export type ExportLine = z.output<typeof ExportLine>;

const PackedLine = z.strictObject({ layer: z.string(), kind: z.string(), key: z.string(), packed: z.string() });

/** @throws EtudeError INVALID_ARGUMENT if it isn't an export, FAILED_PRECONDITION if its version is newer */
export function readHeader(line: string): void {
  const header = ExportHeader.safeParse(parsedJson(line));
  if (!header.success) {
    const message = `line 1 is not the header of an export of memory, such as {"etude":"memory","version":1,"tenant":"acme"}: ${reasonOf(header.error)}`;
    throw new EtudeError('INVALID_ARGUMENT', message, { field: 'lines' });
  }
  if (header.data.version > EXPORT_VERSION) {
    const message = `the export has version ${header.data.version}, and this service reads versions up to ${EXPORT_VERSION}; upgrade this service, or export with an older one`;
    throw new EtudeError('FAILED_PRECONDITION', message);
  }
}

/** @returns the line, or the reason why it is refused */
export async function readLine(text: string): Promise<ExportLine | string> {
  if (Buffer.byteLength(text) > LINE_BYTES_MAX) return `is longer than ${LINE_BYTES_MAX} bytes`;
  const value = parsedJson(text);
  const packed = PackedLine.safeParse(value);
  const plain = packed.success ? await unpacked(packed.data.packed) : value;
  if (plain === undefined) return packed.success ? `cannot be unpacked to at most ${UNPACKED_BYTES_MAX} bytes` : 'is no JSON';
  const parsed = ExportLine.safeParse(plain);
  return parsed.success ? parsed.data : reasonOf(parsed.error);
}

export function reasonOf({ issues: [issue] }: z.ZodError): string {
  return `${issue?.path.map(String).join('.') || '(root)'}: ${issue?.message ?? 'does not parse'}`;
}

const gunzipped = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);

/** Unpacks in a background thread. undefined if it isn't packed JSON. */
async function unpacked(packed: string): Promise<unknown> {
  const plain = await gunzipped(Buffer.from(packed, 'base64'), { maxOutputLength: UNPACKED_BYTES_MAX }).catch(() => undefined);
  return plain && parsedJson(plain.toString());
}
