import { fromJson, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  type DownloadFileResponseSchema,
  type ExecuteEventSchema,
  ExecutionOutcomeSchema,
  type RichOutputSchema,
  SandboxFileSchema,
  SandboxSchema,
  type Scratchpad as ScratchpadMessage,
  ScratchpadSchema,
  type ToolCall,
  ToolCallSchema,
} from './gen/etude/v1/sandboxes_pb.js';
import { EtudeError } from './errors.js';
import { type SandboxLimits as LimitsMessage, SandboxLimitsSchema } from './gen/etude/v1/tasks_pb.js';
import { sandboxName } from './ids.js';
import { isDeeper } from './json.js';
import { type Display, type RunResult, SandboxLimits, type SandboxSession, type SessionFile } from './sandbox.js';
import { type CellToolCall, Scratchpad, workingMemory } from './scratchpad.js';
import { fromWire, givenIn, toWire } from './wire/messages.js';

export type ExecuteEventInit = MessageInitShape<typeof ExecuteEventSchema>;
export type SandboxFileInit = MessageInitShape<typeof SandboxFileSchema>;
export type DownloadFileInit = MessageInitShape<typeof DownloadFileResponseSchema>;

/** The limits that a message sets, by their names in the contract. Zero and unset are left out. Ranges aren't checked. */
export const sandboxLimitsOf = (limits: LimitsMessage | undefined): Partial<SandboxLimits> =>
  givenIn(SandboxLimits, SandboxLimitsSchema, limits ?? {}) ?? {};

export const sandboxMessage = (session: SandboxSession): MessageInitShape<typeof SandboxSchema> =>
  toWire(SandboxSchema, { ...session, name: sandboxName(session.id) });

/** Why a session that has ended takes no more calls. */
export function endedError({ id, state, stateReason }: Pick<SandboxSession, 'id' | 'state' | 'stateReason'>): EtudeError {
  const how = state === 'lost' ? `was lost: ${stateReason}` : state === 'expired' ? 'expired; renew a sandbox in time' : 'was closed';
  return new EtudeError('FAILED_PRECONDITION', `${sandboxName(id)} ${how}. Create another one.`, {
    metadata: { name: sandboxName(id), state, ...(stateReason ? { reason: stateReason } : {}) },
  });
}

export const sandboxFileMessage = (file: SessionFile, uploadedBytes = 0): SandboxFileInit =>
  toWire(SandboxFileSchema, { ...file, uploadedBytes });

const isBinary = (mediaType: string) => /^(image\/(?!svg\+xml)|audio\/|video\/|application\/(pdf|octet-stream)$)/.test(mediaType);

/** Protobuf decoders stop at 100 nested messages, and each nested object takes three. */
const JSON_DEPTH_MAX = 30;

/** Texts stay text, images and the like become bytes, the rest JSON. JSON nested too deeply is left out, with a note in `text/plain`. */
export function richOutputMessage(display: Display): MessageInitShape<typeof RichOutputSchema> {
  const message = { text: {} as Record<string, string>, binary: {} as Record<string, Uint8Array>, json: {} as Record<string, Value> };
  const tooDeep: string[] = [];
  for (const [mediaType, data] of Object.entries(display)) {
    if (isDeeper(data, JSON_DEPTH_MAX)) tooDeep.push(mediaType);
    else if (/[/+]json$/.test(mediaType) || typeof data !== 'string') message.json[mediaType] = fromJson(ValueSchema, data);
    else if (isBinary(mediaType)) message.binary[mediaType] = Buffer.from(data, 'base64');
    else message.text[mediaType] = data;
  }
  if (tooDeep.length > 0) {
    const note = `(its ${tooDeep.join(', ')} is nested more than ${JSON_DEPTH_MAX} deep)`;
    message.text['text/plain'] = [message.text['text/plain'], note].filter(Boolean).join('\n');
  }
  return message;
}

export function executionOutcomeMessage(result: RunResult): MessageInitShape<typeof ExecutionOutcomeSchema> {
  const [cpu, wall, memoryPeakKib] = [result.cpuMs, result.wallMs, result.memoryPeakKiB].map(Math.ceil);
  const memory = result.scratchpad ? { workingMemory: workingMemory(result.scratchpad) } : {};
  return toWire(ExecutionOutcomeSchema, { ...result, ...memory, cpu, wall, memoryPeakKib });
}

export const toolCallMessage = (call: CellToolCall): MessageInitShape<typeof ToolCallSchema> => toWire(ToolCallSchema, call);

export const toolCallOf = ({ number, tool, arguments: given }: ToolCall): CellToolCall => ({
  number,
  tool,
  arguments: Object.fromEntries(Object.entries(given).map(([name, value]) => [name, toJson(ValueSchema, value)])),
});

/** The scratchpad in a message of this server. */
export const scratchpadOf = (message: ScratchpadMessage): Scratchpad => fromWire(Scratchpad, ScratchpadSchema, message);
