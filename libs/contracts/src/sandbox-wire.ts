import { create, fromJson, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  type AnswerToolCallRequest,
  type AnswerToolCallRequestSchema,
  type DownloadFileResponseSchema,
  type ExecuteEventSchema,
  type ExecuteRequest,
  ExecuteRequestSchema,
  ExecutionOutcomeSchema,
  Language,
  type RichOutput,
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
import { isDeeper, type Json } from './json.js';
import { type Display, type RunResult, SandboxLimits, type SandboxSession, type SessionFile } from './sandbox.js';
import { type CellTool, type CellToolAnswer, type CellToolCall, Scratchpad, TOOL_ANSWER_BYTES_MAX, workingMemory } from './scratchpad.js';
import { fromWire, givenIn, toWire } from './wire/messages.js';
import { invalidField } from './wire/validation.js';

export type ExecuteEventInit = MessageInitShape<typeof ExecuteEventSchema>;
type AnswerToolCallInit = MessageInitShape<typeof AnswerToolCallRequestSchema>;
export type SandboxFileInit = MessageInitShape<typeof SandboxFileSchema>;
export type DownloadFileInit = MessageInitShape<typeof DownloadFileResponseSchema>;

/** The limits that a message sets, by their names in the contract. Zero and unset are left out. Ranges aren't checked. */
export const sandboxLimitsOf = (limits: LimitsMessage | undefined): Partial<SandboxLimits> =>
  givenIn(SandboxLimits, SandboxLimitsSchema, limits ?? {}) ?? {};

export const sandboxMessage = (session: SandboxSession): MessageInitShape<typeof SandboxSchema> =>
  toWire(SandboxSchema, { ...session, name: sandboxName(session.id) });

export function endedError({ id, state, stateReason }: Pick<SandboxSession, 'id' | 'state' | 'stateReason'>): EtudeError {
  const how = state === 'lost' ? `was lost: ${stateReason}` : state === 'expired' ? 'expired; renew a sandbox in time' : 'was closed';
  return new EtudeError('FAILED_PRECONDITION', `${sandboxName(id)} ${how}. Create another sandbox.`, {
    metadata: { name: sandboxName(id), state, ...(stateReason ? { reason: stateReason } : {}) },
  });
}

/** Also the answer for another tenant's sandbox, so that its existence stays hidden. */
export function noSandboxError(id: string): EtudeError {
  const message = `There is no ${sandboxName(id)}. It may belong to another tenant, or have ended more than an hour ago.`;
  return new EtudeError('NOT_FOUND', message, { metadata: { name: sandboxName(id) } });
}

export const sandboxFileMessage = (file: SessionFile, uploadedBytes = 0): SandboxFileInit =>
  toWire(SandboxFileSchema, { ...file, uploadedBytes });

const isBinary = (mediaType: string) => /^(image\/(?!svg\+xml)|audio\/|video\/|application\/(pdf|octet-stream)$)/.test(mediaType);

/** Protobuf decoders stop at 100 nested messages, and each nested object takes three. */
const JSON_DEPTH_MAX = 30;
const TOOL_ERROR_CHARS_MAX = 100_000;

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

export function cellRequest(name: string, cell: CellRequest): ExecuteRequest {
  return create(ExecuteRequestSchema, { ...toWire(ExecuteRequestSchema, cell), name, language: Language.PYTHON });
}

interface CellRequest {
  readonly executionId: string;
  readonly code: string;
  readonly tools?: readonly CellTool[];
  readonly scratchpad?: Scratchpad;
}

/** @throws nothing: an answer that can't be sent becomes a failure that says so */
export function toolAnswerMessage(name: string, executionId: string, number: number, answer: CellToolAnswer): AnswerToolCallInit {
  const call = { name, executionId, number };
  if (!answer.success) return { ...call, answer: { case: 'error', value: answer.error.slice(0, TOOL_ERROR_CHARS_MAX) } };
  const json = JSON.stringify(answer.result);
  const size = Buffer.byteLength(json);
  const tooLarge = size > TOOL_ANSWER_BYTES_MAX ? `has ${size} bytes as JSON, over the limit of ${TOOL_ANSWER_BYTES_MAX}` : null;
  const why = isDeeper(answer.result, JSON_DEPTH_MAX) ? `is nested more than ${JSON_DEPTH_MAX} deep` : tooLarge;
  if (why !== null) return { ...call, answer: { case: 'error', value: `the result ${why}` } };
  return { ...call, answer: { case: 'result', value: fromJson(ValueSchema, JSON.parse(json) as Json) } };
}

/** The answer in a message, of any size: the sandbox replaces an answer above TOOL_ANSWER_BYTES_MAX. @throws EtudeError INVALID_ARGUMENT */
export function toolAnswerOf({ answer }: AnswerToolCallRequest): CellToolAnswer {
  if (answer.case === undefined) throw invalidField('answer', 'is required; set result or error');
  return answer.case === 'error' ? { success: false, error: answer.value } : { success: true, result: toJson(ValueSchema, answer.value) };
}

/** The text and JSON of an output. Images are left out; code can write them to files. */
export function displayOf({ text, json }: RichOutput): Display {
  const values = Object.entries(json).map(([mediaType, value]) => [mediaType, toJson(ValueSchema, value)] as const);
  return { ...text, ...Object.fromEntries(values) };
}

export const scratchpadOf = (message: ScratchpadMessage): Scratchpad => fromWire(Scratchpad, ScratchpadSchema, message);
