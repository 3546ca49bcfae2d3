import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { EtudeError } from '@etude/contracts/errors';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { REQUEST_LINES_MAX } from '@etude/memory/upkeep/import-lines';
import { invalidField } from '../wire/validation.js';

export const MIB = 1024 * 1024;

/** Maximum size of one message, by method; the default is one MiB. */
const BYTES_MAX: Readonly<Record<string, number>> = {
  StoreEpisode: 2 * MIB,
  StoreProcedure: 4 * MIB,
  ImportDocument: 2 * MIB,
  ImportMemory: 16 * MIB,
  RegisterSkill: 4 * MIB,
  CheckSkill: 4 * MIB,
  // The size of one chunk of an archive.
  ImportSkill: 16 * MIB,
};
/** Maximum of entries in each top-level list of a message. */
const ENTRIES_MAX = Math.max(10_000, REQUEST_LINES_MAX);
const LIMITED: ReadonlySet<DescService> = new Set([Memory, Skills, Agents]);

export const bytesMaxOf = ({ name }: DescMethod) => BYTES_MAX[name] ?? MIB;

/**
 * Checks the size of a request before decoding: a small message can hold a million empty entries, which would each become an object.
 * Returns null if the size is acceptable, and for services without such limits.
 */
export function sizeProblem(method: DescMethod, bytes: Uint8Array): EtudeError | null {
  if (!LIMITED.has(method.parent)) return null;
  const bytesMax = bytesMaxOf(method);
  if (bytes.byteLength > bytesMax) {
    return new EtudeError(
      'PAYLOAD_TOO_LARGE',
      `A request of ${method.name} may have ${bytesMax} bytes; this one has ${bytes.byteLength}. Send less at once.`,
    );
  }
  const counts = countFields(bytes);
  return method.input.fields.map(({ name, number }) => tooMany(name, counts.get(number) ?? 0)).find((problem) => problem !== null) ?? null;
}

export function tooMany(field: string, count: number): EtudeError | null {
  return count > ENTRIES_MAX ? invalidField(field, `must not have more than ${ENTRIES_MAX} entries; it has ${count}`) : null;
}

/** Counts each top-level field of a message, up to the first unreadable byte. The decoder reports that error later. */
function countFields(bytes: Uint8Array): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      counts.set(number, (counts.get(number) ?? 0) + 1);
      reader.skip(type, number);
    }
  } catch {
    return counts;
  }
  return counts;
}
