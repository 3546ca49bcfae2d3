import { randomUUID } from 'node:crypto';
import {
  type CreateSandboxRequest,
  CreateSandboxRequestSchema,
  type ExecuteRequest,
  ExecuteRequestSchema,
  Language,
  type ListSandboxFilesRequest,
  type RenewSandboxRequest,
  RenewSandboxRequestSchema,
  SandboxState,
  type UploadFileRequest,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { RequestId } from '@etude/contracts/ids';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { FILE_CHUNK_BYTES_MAX, type SandboxSession, SessionRequest } from '@etude/contracts/sandbox-session';
import { sessionStateOf } from '@etude/contracts/sandbox-wire';
import { z } from 'zod';
import { fromWire, wrongInWire } from '../wire/messages.js';
import { pathProblem, sandboxIdOfName } from '../wire/names.js';
import { boundedCount, invalidField, parseField, refuseAny, type Violation } from '../wire/validation.js';

const LABELS_MAX = 64;
const LABEL_KEY_MAX_CHARS = 63;
const LABEL_VALUE_MAX_CHARS = 255;
const CODE_MAX_CHARS = 1_000_000;
const TOKEN_MAX_CHARS = 1_000;
const FILE_PAGE = { max: 1_000, standard: 1_000 };

const when = (wrong: boolean, field: string, description: string): readonly Violation[] => (wrong ? [{ field, description }] : []);

const Id = RequestId.optional();

/** What a caller may ask of a new session; the controller fills in the rest. */
const Asked = SessionRequest.pick({ template: true, ttlMs: true }).extend({
  requestId: Id,
  limits: SandboxLimits.optional(),
  labels: z
    .record(z.string(), z.string().max(LABEL_VALUE_MAX_CHARS))
    .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `must not have more than ${LABELS_MAX} entries`)
    .refine(
      (labels) => Object.keys(labels).every((key) => key.length <= LABEL_KEY_MAX_CHARS),
      `must not have keys longer than ${LABEL_KEY_MAX_CHARS} characters`,
    ),
});
const Executed = z.object({ executionId: Id, limits: SandboxLimits.optional() });

/** With a request id in any case, so that it can be tried at more than one controller. @throws EtudeError INVALID_ARGUMENT */
export function checkedCreate(request: CreateSandboxRequest): CreateSandboxRequest {
  fromWire(Asked, CreateSandboxRequestSchema, request);
  return { ...request, requestId: request.requestId || randomUUID() };
}

/** @throws EtudeError INVALID_ARGUMENT */
export const checkRenew = (request: RenewSandboxRequest) =>
  fromWire(SessionRequest.pick({ ttlMs: true }), RenewSandboxRequestSchema, request);

function codeViolations({ code, language, stdin, resumeToken }: ExecuteRequest): readonly Violation[] {
  const shell = language === Language.SHELL;
  return [
    ...when(code === '' && resumeToken === '', 'code', 'must not be empty'),
    ...when(code.length > CODE_MAX_CHARS, 'code', `must not be longer than ${CODE_MAX_CHARS} characters`),
    ...when(shell && code.includes('\0'), 'code', 'must not hold a NUL character; no shell takes one'),
    ...when(!shell && stdin !== '', 'stdin', 'goes with LANGUAGE_SHELL only; a cell has no standard input'),
  ];
}

/** With an execution id in any case, so that it can be followed again. @throws EtudeError INVALID_ARGUMENT */
export function checkedExecute(request: ExecuteRequest): ExecuteRequest {
  const { executionId, language, resumeToken } = request;
  refuseAny([
    ...when(executionId === '' && resumeToken !== '', 'execution_id', 'is required with resume_token; both are in every event'),
    ...when(resumeToken.length > TOKEN_MAX_CHARS, 'resume_token', 'was not made by this server; pass the one of an event, unchanged'),
    ...when(Language[language] === undefined, 'language', `${language as number} is no language; use LANGUAGE_PYTHON or LANGUAGE_SHELL`),
    ...codeViolations(request),
    ...wrongInWire(Executed, ExecuteRequestSchema, request, ''),
  ]);
  return { ...request, executionId: executionId || randomUUID() };
}

/** undefined for every state. @throws EtudeError INVALID_ARGUMENT */
export function checkedState(state: SandboxState): SandboxSession['state'] | undefined {
  const known = sessionStateOf(state);
  if (known || state === SandboxState.UNSPECIFIED) return known ?? undefined;
  throw invalidField('state', `${state as number} is no state of a sandbox`);
}

/** @throws EtudeError INVALID_ARGUMENT */
export function checkExecutionId(executionId: string): void {
  if (executionId === '') throw invalidField('execution_id', 'is required; every event of the execution has it');
  parseField(RequestId, executionId, 'execution_id');
}

/** Of a file: the sandbox's id. @throws EtudeError INVALID_ARGUMENT; fields are named below `root` */
export function checkedFile(
  { name, path, offset = 0n, sizeBytes = offset }: { name: string; path: string; offset?: bigint; sizeBytes?: bigint },
  root = '',
): string {
  const id = sandboxIdOfName(name, `${root}name`);
  const problem = pathProblem(path);
  refuseAny([
    ...(problem === null ? [] : [{ field: `${root}path`, description: problem }]),
    ...when(offset < 0n, `${root}offset`, 'must not be negative'),
    ...when(sizeBytes < offset, `${root}size_bytes`, 'must be the size of the whole file, what was sent before included'),
  ]);
  return id;
}

/** @throws EtudeError INVALID_ARGUMENT */
export function checkedFileList(request: ListSandboxFilesRequest): ListSandboxFilesRequest {
  const tooLong = request.pageToken.length > TOKEN_MAX_CHARS;
  refuseAny(when(tooLong, 'page_token', 'was not made by this server; pass next_page_token of the answer before, unchanged'));
  return { ...request, pageSize: boundedCount(request.pageSize, 'page_size', FILE_PAGE) };
}

/** A message of an upload behind its header. @throws EtudeError INVALID_ARGUMENT */
export function checkedChunk(request: UploadFileRequest): UploadFileRequest {
  const { part } = request;
  if (part.case !== 'chunk') throw invalidField(part.case ?? 'part', 'must be a chunk in every message but the first');
  const bytes = part.value.byteLength;
  if (bytes <= FILE_CHUNK_BYTES_MAX) return request;
  throw invalidField('chunk', `must not have more than ${FILE_CHUNK_BYTES_MAX} bytes; it has ${bytes}. Send several`);
}
