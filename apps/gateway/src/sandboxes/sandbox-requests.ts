import { randomUUID } from 'node:crypto';
import type { Duration } from '@bufbuild/protobuf/wkt';
import {
  type CreateSandboxRequest,
  type ExecuteRequest,
  Language,
  type ListSandboxFilesRequest,
  type RenewSandboxRequest,
  SandboxState,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type SandboxLimits as LimitsMessage, SandboxLimitsSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { RequestId } from '@etude/contracts/ids';
import { SandboxLimits, TemplateName } from '@etude/contracts/sandbox';
import { type SandboxSession, SESSION_TTL_MS_DEFAULT, SESSION_TTL_MS_MAX } from '@etude/contracts/sandbox-session';
import { millisecondsOf, sessionStateOf } from '@etude/contracts/sandbox-wire';
import { wrongInWire } from '../wire/messages.js';
import { pathProblem, sandboxIdOfName } from '../wire/names.js';
import { boundedCount, invalidField, refuseAny, type Violation, violationsOf } from '../wire/validation.js';

const LABELS_MAX = 64;
const LABEL_KEY_MAX_CHARS = 63;
const LABEL_VALUE_MAX_CHARS = 255;
const CODE_MAX_CHARS = 1_000_000;
const TOKEN_MAX_CHARS = 1_000;
const TTL_MS_MIN = 1_000;
const FILE_PAGE = { max: 1_000, standard: 1_000 };

const when = (wrong: boolean, field: string, description: string): readonly Violation[] => (wrong ? [{ field, description }] : []);

function idViolations(id: string, field: string): readonly Violation[] {
  const parsed = RequestId.safeParse(id);
  return id === '' || parsed.success ? [] : violationsOf(parsed.error, RequestId, () => field);
}

const limitViolations = (limits: LimitsMessage | undefined): readonly Violation[] =>
  limits ? wrongInWire(SandboxLimits, SandboxLimitsSchema, limits, 'limits') : [];

function ttlViolations(ttl: Duration | undefined): readonly Violation[] {
  const ms = millisecondsOf(ttl) ?? SESSION_TTL_MS_DEFAULT;
  return when(
    ms < TTL_MS_MIN || ms > SESSION_TTL_MS_MAX,
    'ttl',
    `must be between ${TTL_MS_MIN / 1_000} s and ${SESSION_TTL_MS_MAX / 3_600_000} h (0 means the default of ${SESSION_TTL_MS_DEFAULT / 1_000} s)`,
  );
}

function labelViolations(labels: Readonly<Record<string, string>>): readonly Violation[] {
  const entries = Object.entries(labels);
  if (entries.length > LABELS_MAX)
    return [{ field: 'labels', description: `must not have more than ${LABELS_MAX} entries; it has ${entries.length}` }];
  return entries.flatMap(([key, value]) => [
    ...when(key.length > LABEL_KEY_MAX_CHARS, 'labels', `must not have keys longer than ${LABEL_KEY_MAX_CHARS} characters`),
    ...when(
      value.length > LABEL_VALUE_MAX_CHARS,
      `labels.${JSON.stringify(key)}`,
      `must not be longer than ${LABEL_VALUE_MAX_CHARS} characters`,
    ),
  ]);
}

function templateViolations(template: string): readonly Violation[] {
  const wrong = template !== '' && !TemplateName.safeParse(template).success;
  return when(wrong, 'template', 'must be 1 to 30 lower-case letters, digits and "-", such as "default"');
}

/** With a request id in any case, so that it can be tried at more than one controller. @throws EtudeError INVALID_ARGUMENT */
export function checkedCreate(request: CreateSandboxRequest): CreateSandboxRequest {
  refuseAny([
    ...idViolations(request.requestId, 'request_id'),
    ...templateViolations(request.template),
    ...limitViolations(request.limits),
    ...ttlViolations(request.ttl),
    ...labelViolations(request.labels),
  ]);
  return { ...request, requestId: request.requestId || randomUUID() };
}

/** @throws EtudeError INVALID_ARGUMENT */
export function checkedRenew(request: RenewSandboxRequest): RenewSandboxRequest {
  refuseAny(ttlViolations(request.ttl));
  return request;
}

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
  const { executionId, language, limits, resumeToken } = request;
  refuseAny([
    ...idViolations(executionId, 'execution_id'),
    ...when(executionId === '' && resumeToken !== '', 'execution_id', 'is required with resume_token; both are in every event'),
    ...when(resumeToken.length > TOKEN_MAX_CHARS, 'resume_token', 'was not made by this server; pass the one of an event, unchanged'),
    ...when(Language[language] === undefined, 'language', `${language as number} is no language; use LANGUAGE_PYTHON or LANGUAGE_SHELL`),
    ...codeViolations(request),
    ...limitViolations(limits),
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
  const missing = when(executionId === '', 'execution_id', 'is required; every event of the execution has it');
  refuseAny([...missing, ...idViolations(executionId, 'execution_id')]);
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
