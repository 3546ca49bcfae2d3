import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';

export const MIB = 1024 * 1024;

/** Maximum size of one message, by method; the default is one MiB. */
const BYTES_MAX: Readonly<Record<string, number>> = {
  SubmitTask: 16 * MIB,
  StoreProcedure: 4 * MIB,
  ImportDocument: 2 * MIB,
  ImportMemory: 16 * MIB,
  AddConversation: 16 * MIB,
  RegisterSkill: 4 * MIB,
  CheckSkill: 4 * MIB,
  // The size of one chunk of an archive.
  ImportSkill: 16 * MIB,
};
const LIMITED: ReadonlySet<DescService> = new Set([Memory, Skills, Agents, Tools, Worlds]);

export const bytesMaxOf = ({ name }: DescMethod) => BYTES_MAX[name] ?? MIB;

/** Checks the size of a request before decoding. Returns null if it is acceptable, and for services without such limits. */
export function sizeProblem(method: DescMethod, { byteLength }: Uint8Array): EtudeError | null {
  const bytesMax = bytesMaxOf(method);
  if (!LIMITED.has(method.parent) || byteLength <= bytesMax) return null;
  const message = `A request of ${method.name} may have ${bytesMax} bytes; yours has ${byteLength}. Send less at once.`;
  return new EtudeError('PAYLOAD_TOO_LARGE', message);
}
