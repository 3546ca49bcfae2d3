import { fromJson, type MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, durationFromMs, timestampFromMs, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  type DownloadFileResponseSchema,
  type ExecuteEventSchema,
  type ExecutionOutcomeSchema,
  type RichOutputSchema,
  type SandboxFileSchema,
  type SandboxSchema,
  SandboxState,
} from './gen/etude/v1/sandboxes_pb.js';
import type { SandboxLimits as LimitsMessage, SandboxLimitsSchema } from './gen/etude/v1/tasks_pb.js';
import { sandboxName } from './ids.js';
import { isDeeper } from './json.js';
import type { Display, RunResult, SandboxLimits } from './sandbox.js';
import type { SandboxSession, SessionFile } from './sandbox-session.js';

export type ExecuteEventInit = MessageInitShape<typeof ExecuteEventSchema>;
export type SandboxFileInit = MessageInitShape<typeof SandboxFileSchema>;
export type DownloadFileInit = MessageInitShape<typeof DownloadFileResponseSchema>;

const STATES: Readonly<Record<SandboxSession['state'], SandboxState>> = {
  open: SandboxState.OPEN,
  closed: SandboxState.CLOSED,
  expired: SandboxState.EXPIRED,
  lost: SandboxState.LOST,
};

/** The names of limits in messages, by their names in the contract. */
const LIMITS = {
  cpuMs: 'cpuTime',
  wallMs: 'wallTime',
  memoryMiB: 'memoryMib',
  processes: 'processes',
  fileSizeMiB: 'fileSizeMib',
  outputKiB: 'outputKib',
  diskMiB: 'diskMib',
} as const;
const LIMIT_NAMES = Object.entries(LIMITS) as ReadonlyArray<[keyof typeof LIMITS, (typeof LIMITS)[keyof typeof LIMITS]]>;

export const sandboxLimitsMessage = (limits: SandboxLimits): MessageInitShape<typeof SandboxLimitsSchema> =>
  Object.fromEntries(LIMIT_NAMES.map(([key, name]) => [name, key.endsWith('Ms') ? durationFromMs(limits[key]) : limits[key]]));

/** Whole milliseconds, rounded up so that a tiny duration isn't zero; undefined if unset or zero. */
export function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (!duration) return undefined;
  return Number(duration.seconds) * 1_000 + Math.ceil(duration.nanos / 1_000_000) || undefined;
}

/** The limits that a message sets, by their names in the contract. Zero and unset are left out. Ranges aren't checked. */
export function sandboxLimitsOf(limits: LimitsMessage | undefined): Partial<SandboxLimits> {
  const given = LIMIT_NAMES.map(([key, name]) => {
    const value = limits?.[name];
    return [key, typeof value === 'number' ? value : millisecondsOf(value)] as const;
  });
  return Object.fromEntries(given.filter(([, value]) => value));
}

export const sandboxMessage = (session: SandboxSession): MessageInitShape<typeof SandboxSchema> => ({
  name: sandboxName(session.id),
  state: STATES[session.state],
  stateReason: session.stateReason,
  template: session.template,
  limits: sandboxLimitsMessage(session.limits),
  labels: session.labels,
  createTime: timestampFromMs(session.createdAt),
  expireTime: timestampFromMs(session.expiresAt),
});

export const sandboxFileMessage = (file: SessionFile, uploadedBytes = 0): SandboxFileInit => ({
  path: file.path,
  sizeBytes: BigInt(file.sizeBytes),
  modifyTime: timestampFromMs(file.modifiedMs),
  uploadedBytes: BigInt(uploadedBytes),
});

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

export const executionOutcomeMessage = (result: RunResult): MessageInitShape<typeof ExecutionOutcomeSchema> => ({
  exit: result.exit,
  exitCode: result.exitCode ?? undefined,
  signal: result.signal ?? undefined,
  stdoutCutBytes: BigInt(result.stdoutCutBytes),
  stderrCutBytes: BigInt(result.stderrCutBytes),
  cpu: durationFromMs(Math.ceil(result.cpuMs)),
  wall: durationFromMs(Math.ceil(result.wallMs)),
  memoryPeakKib: BigInt(Math.ceil(result.memoryPeakKiB)),
  error: result.error && { type: result.error.type, message: result.error.message, line: result.error.line ?? 0 },
  stateLost: result.stateLost ?? false,
});
