import { idOf } from '../layers/memory-search.js';
import { parseBody } from '../layers/records.js';
import { type Owners, RECORD_FIELDS, type RecordKind, type RecordStore, type StoredRecord } from '../record-store.js';
import { LAYERS, walkOwned } from './owned-records.js';
import { EtudeError } from '@etude/contracts/errors';
import { OwnerAgent, OwnerTenant, UserId } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { hasHiddenTests } from '@etude/domain/skills/content-digest';
import { promisify } from 'node:util';
import { gunzip, gzipSync } from 'node:zlib';
import { z } from 'zod';

const EXPORTED_KINDS = ['transition', 'episode', 'fact', 'summary', 'reflection', 'document', 'chunk', 'skill'] as const;
/** Kinds whose records may hold tests that only reviewers read. */
const TESTED_KINDS: readonly RecordKind[] = ['episode', 'skill'];

export interface ExportOptions {
  /** Default all. */
  readonly layers?: readonly MemoryLayer[];
  /** Whether the export may hold tests that only reviewers read. If not, records with such tests are refused. Default true. */
  readonly hiddenTests?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * A header, then one record per line, without vectors: the import makes them anew. Marks of erasures and notes of applied writes are not
 * exported.
 *
 * Holds one page of records at a time. Records that are written meanwhile may be missing.
 *
 * @throws EtudeError PERMISSION_DENIED for tests that may not be in it, before the first line where they are there by then
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
  const { createdAt, worth, shown, fields, title, text, sources, body } = record;
  const line = { layer, kind, key, agent, user, createdAt, worth, shown, fields, title, text, sources, body };
  const plain = JSON.stringify(line);
  if (plain.length <= PACKED_OVER_BYTES) return plain;
  return JSON.stringify({ layer, kind, key, packed: gzipSync(plain).toString('base64') });
}

/** @throws EtudeError PERMISSION_DENIED where it holds tests that were made from a task's cases, some of which are hidden, or held-out ones */
function refuseHiddenTests(record: StoredRecord): void {
  const { kind, scope } = record;
  if (!TESTED_KINDS.includes(kind) || !holdsHiddenTests(record)) return;
  throw new EtudeError(
    'PERMISSION_DENIED',
    `An export of this would hold tests that only reviewers read: ${kind} ${idOf(record)} of "${scope.agent}" has some, held out or made from the cases of a task. Export with a key that has the role "reviewer", or only layers without such tests; "semantic" never has any.`,
  );
}

function holdsHiddenTests(record: StoredRecord): boolean {
  const { tests = [], heldOut = [], ...fields } = parseBody<Partial<Skill>>(record).value;
  if (heldOut.length > 0) return true;
  return tests.length > 0 && (record.kind === 'episode' || hasHiddenTests(fields));
}

/** Raised when older readers could no longer read what is written. */
const EXPORT_VERSION = 1;
/** A longer line is refused before it is read. The largest bodies that are stored stay below it, packed. */
export const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** A longer line is packed, which its base64 makes at most a third longer than its bytes. */
const PACKED_OVER_BYTES = 1024 * 1024;
/** What a packed line may unpack to. */
export const UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
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
  /** JSON, byte for byte. */
  body: z.string(),
});

export type ExportLine = z.output<typeof ExportLine>;

const PackedLine = z.strictObject({ layer: z.string(), kind: z.string(), key: z.string(), packed: z.string() });

/** @throws EtudeError INVALID_ARGUMENT for what is no export, FAILED_PRECONDITION for one of a newer version */
export function readHeader(line: string): void {
  const header = ExportHeader.safeParse(parseJson(line));
  if (!header.success)
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `line 1 is not the header of an export of memory, such as {"etude":"memory","version":1,"tenant":"acme"}: ${reasonOf(header.error)}`,
      { field: 'lines' },
    );
  if (header.data.version > EXPORT_VERSION)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `the export is of version ${header.data.version}, and this service reads up to ${EXPORT_VERSION}; upgrade it, or export with an older one`,
    );
}

/** @returns the line, or why it is none */
export async function readLine(text: string): Promise<ExportLine | string> {
  if (Buffer.byteLength(text) > LINE_BYTES_MAX) return `is longer than ${LINE_BYTES_MAX} bytes`;
  const value = parseJson(text);
  const packed = PackedLine.safeParse(value);
  const plain = packed.success ? await unpacked(packed.data.packed) : value;
  if (plain === undefined) return packed.success ? `cannot be unpacked to at most ${UNPACKED_BYTES_MAX} bytes` : 'is no JSON';
  const parsed = ExportLine.safeParse(plain);
  return parsed.success ? parsed.data : reasonOf(parsed.error);
}

/** The first thing that is wrong, with its place. */
export function reasonOf({ issues: [issue] }: z.ZodError): string {
  return `${issue?.path.map(String).join('.') || '(root)'}: ${issue?.message ?? 'does not parse'}`;
}

/** undefined where it is none */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const gunzipped = promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip);

/** Beside this thread. undefined for what is no packed JSON. */
async function unpacked(packed: string): Promise<unknown> {
  const plain = await gunzipped(Buffer.from(packed, 'base64'), { maxOutputLength: UNPACKED_BYTES_MAX }).catch(() => undefined);
  return plain && parseJson(plain.toString());
}
