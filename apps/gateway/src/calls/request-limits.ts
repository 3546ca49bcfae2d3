import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { REQUEST_LINES_MAX } from '@etude/memory/upkeep/import-lines';
import { invalidField } from '../wire/validation.js';

const MIB = 1024 * 1024;

interface RequestLimits {
  /** Of the message as it travels. */
  readonly bytesMax: number;
  /** Entries of repeated fields, by the names of the proto. */
  readonly entriesMax: Readonly<Record<string, number>>;
}

const USUAL: RequestLimits = { bytesMax: MIB, entriesMax: { layers: 100, kinds: 100, ids: 1_000 } };

const LIMITS: Readonly<Record<string, RequestLimits>> = {
  StoreEpisode: { bytesMax: 2 * MIB, entriesMax: { context: 1_000, actions: 10_000, outcomes: 10_000, skills_used: 1_000 } },
  StoreProcedure: { bytesMax: 4 * MIB, entriesMax: {} },
  ImportDocument: { bytesMax: 2 * MIB, entriesMax: {} },
  ImportMemory: { bytesMax: 16 * MIB, entriesMax: { lines: REQUEST_LINES_MAX } },
  RegisterSkill: { bytesMax: 4 * MIB, entriesMax: {} },
  CheckSkill: { bytesMax: 4 * MIB, entriesMax: {} },
  // One part of an archive.
  ImportSkill: { bytesMax: 16 * MIB, entriesMax: {} },
};

/** Services whose requests have limits. */
const LIMITED: ReadonlySet<DescService> = new Set([Memory, Skills, Agents]);

/** What a request of these services may be, by the name of its call. */
export function limitsOf(method: string): RequestLimits {
  return LIMITS[method] ?? USUAL;
}

/**
 * What is wrong with the size of a request, told from its bytes before any of it is decoded: a small message can hold a million
 * empty entries, and each would become an object. Null where nothing is, and for services without such limits.
 */
export function sizeProblem({ parent, name: method, input }: DescMethod, bytes: Uint8Array): EtudeError | null {
  if (!LIMITED.has(parent)) return null;
  const { bytesMax, entriesMax } = limitsOf(method);
  if (bytes.byteLength > bytesMax) {
    return new EtudeError(
      'PAYLOAD_TOO_LARGE',
      `A request of ${method} may have ${bytesMax} bytes; this one has ${bytes.byteLength}. Send less at once.`,
    );
  }
  const limits = input.fields.flatMap(({ name, number }) =>
    entriesMax[name] === undefined ? [] : [{ name, number, max: entriesMax[name] }],
  );
  const counts = limits.length === 0 ? new Map<number, number>() : countFields(bytes);
  const long = limits.find(({ number, max }) => (counts.get(number) ?? 0) > max);
  if (long === undefined) return null;
  return invalidField(long.name, `must not have more than ${long.max} entries; it has ${counts.get(long.number)}`);
}

const VARINT = 0;
const FIXED_64 = 1;
const DELIMITED = 2;
const FIXED_32 = 5;

/** How often each field is in a message, at its top; as far as it can be read, since the decoder says what is wrong with it. */
function countFields(bytes: Uint8Array): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let factor = 1; at < bytes.length; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    counts.set(number, (counts.get(number) ?? 0) + 1);
    const type = tag % 8;
    if (type === VARINT) varint();
    else if (type === DELIMITED) {
      const length = varint();
      at += length;
    } else if (type === FIXED_64) at += 8;
    else if (type === FIXED_32) at += 4;
    else break;
  }
  return counts;
}
