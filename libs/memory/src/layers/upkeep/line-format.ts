import { gunzipSync } from 'node:zlib';
import { EtudeError } from '@etude/contracts/errors';
import { AgentId, TenantId, UserId } from '@etude/contracts/ids';
import { z } from 'zod';
import { RECORD_FIELDS } from '../../record-store.js';

/** Raised when older readers could no longer read what is written. */
export const EXPORT_VERSION = 1;
/** A longer line is refused before it is read. The largest bodies that are stored stay below it, packed. */
export const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** A longer line is packed, which its base64 makes at most a third longer than its bytes. */
export const PACKED_OVER_BYTES = 1024 * 1024;
/** What a packed line may unpack to. */
const UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
const KEY_CHARS_MAX = 1_024;

const ExportHeader = z.object({ etude: z.literal('memory'), version: z.number().int().min(1), tenant: TenantId });
export type ExportHeader = z.infer<typeof ExportHeader>;

const FieldValue = z.union([z.string(), z.array(z.string())]);
const Fields = z.partialRecord(z.enum(RECORD_FIELDS), FieldValue);

export const ExportLine = z.strictObject({
  layer: z.enum(['episodic', 'semantic', 'procedural']),
  kind: z.enum(['transition', 'episode', 'applied', 'fact', 'summary', 'reflection', 'document', 'chunk', 'skill']),
  key: z.string().min(1).max(KEY_CHARS_MAX),
  agent: AgentId,
  user: UserId.nullable(),
  createdAt: z.number().int(),
  worth: z.number().min(0).max(1),
  shown: z.boolean(),
  fields: Fields,
  title: z.string(),
  text: z.string(),
  sources: z.array(z.string()),
  /** JSON, byte for byte. */
  body: z.string(),
});
export type ExportLine = z.output<typeof ExportLine>;

const PackedLine = z.strictObject({ layer: z.string(), kind: z.string(), key: z.string(), packed: z.string() });

/** @throws EtudeError INVALID_ARGUMENT for what is no export, FAILED_PRECONDITION for one of a newer version */
export function readHeader(line: string): ExportHeader {
  const header = z.looseObject({ etude: z.literal('memory'), version: z.number().int().min(1) }).safeParse(parseJson(line));
  if (!header.success)
    throw new EtudeError(
      'INVALID_ARGUMENT',
      'line 1 is not the header of an export of memory; it should look like {"etude":"memory","version":1,"tenant":"acme"}',
      { field: 'lines' },
    );
  if (header.data.version > EXPORT_VERSION)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `the export is of version ${header.data.version}, and this service reads up to ${EXPORT_VERSION}; upgrade it, or export with an older one`,
    );
  const known = ExportHeader.safeParse(header.data);
  if (known.success) return known.data;
  throw new EtudeError('INVALID_ARGUMENT', `the header of the export is wrong: ${reasonOf(known.error)}`, { field: 'lines' });
}

/** @returns the line, or why it is none */
export function readLine(line: string): { readonly line: ExportLine } | { readonly refused: string } {
  if (Buffer.byteLength(line) > LINE_BYTES_MAX) return { refused: `is longer than ${LINE_BYTES_MAX} bytes` };
  const value = parseJson(line);
  if (value === undefined) return { refused: 'is no JSON' };
  const unpacked = isPacked(value) ? unpack(value) : value;
  if (unpacked === undefined) return { refused: 'cannot be unpacked' };
  const parsed = ExportLine.safeParse(unpacked);
  return parsed.success ? { line: parsed.data } : { refused: reasonOf(parsed.error) };
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

function isPacked(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'packed' in value;
}

function unpack(value: unknown): unknown {
  const packed = PackedLine.safeParse(value);
  if (!packed.success) return undefined;
  try {
    return parseJson(gunzipSync(Buffer.from(packed.data.packed, 'base64'), { maxOutputLength: UNPACKED_BYTES_MAX }).toString());
  } catch {
    return undefined;
  }
}
