import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { EtudeError } from '@etude/contracts/errors';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { REQUEST_LINES_MAX } from '@etude/memory/upkeep/import-lines';
import { invalidField } from '../wire/validation.js';

export const MIB = 1024 * 1024;

/** Bytes of one message, by the name of its call; every other one may have one MiB. */
const BYTES_MAX: Readonly<Record<string, number>> = {
  StoreEpisode: 2 * MIB,
  StoreProcedure: 4 * MIB,
  ImportDocument: 2 * MIB,
  ImportMemory: 16 * MIB,
  RegisterSkill: 4 * MIB,
  CheckSkill: 4 * MIB,
  // One part of an archive.
  ImportSkill: 16 * MIB,
};
/** Entries of each list at the top of a message. */
const ENTRIES_MAX = Math.max(10_000, REQUEST_LINES_MAX);
const LIMITED: ReadonlySet<DescService> = new Set([Memory, Skills, Agents]);

export const bytesMaxOf = ({ name }: DescMethod) => BYTES_MAX[name] ?? MIB;

/**
 * What is wrong with the size of a request, told from its bytes before any of it is decoded: a small message can hold a million
 * empty entries, and each would become an object. Null where nothing is, and for services without such limits.
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

/** How often each field is in a message, at its top; as far as it can be read, since the decoder says what is wrong with it. */
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
