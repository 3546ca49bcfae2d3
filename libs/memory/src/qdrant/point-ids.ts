import { createHash } from 'node:crypto';

/**
 * The id of what has these names: a UUID of version 8 from SHA-256, the same at every writer.
 *
 * Not version 5: with SHA-1 somebody could make two names with one id.
 */
export function pointId(...names: ReadonlyArray<string | number>): string {
  const bytes = createHash('sha256').update(JSON.stringify(names)).digest().subarray(0, 16);
  bytes.writeUInt8(((bytes[6] ?? 0) & 0x0f) | 0x80, 6);
  bytes.writeUInt8(((bytes[8] ?? 0) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
