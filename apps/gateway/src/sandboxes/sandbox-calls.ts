import {
  CreateSandboxRequestSchema,
  type ExecuteRequest,
  ExecuteRequestSchema,
  Language,
  RenewSandboxRequestSchema,
  type Sandboxes,
  SandboxStateSchema,
  type UploadFileRequest,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { RequestId } from '@etude/contracts/ids';
import { SandboxLimits } from '@etude/contracts/sandbox';
import { FILE_CHUNK_BYTES_MAX, type SandboxSession, SessionRequest } from '@etude/contracts/sandbox-session';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { forwardedError } from '../controllers/controller-client.js';
import { followExecution } from '../controllers/follow-execution.js';
import { forwardSettings, SandboxRouter } from '../controllers/sandbox-router.js';
import { fromWire, wordOf, wrongInWire } from '../wire/messages.js';
import { afterPageToken, pageToken, pathProblem, sandboxIdOfName } from '../wire/names.js';
import { boundedCount, invalidField, parseField, refuseAny, type Violation } from '../wire/validation.js';

const LABELS_MAX = 64;
const CODE_MAX_CHARS = 1_000_000;
const TOKEN_MAX_CHARS = 1_000;
const PAGE = { max: 200, standard: 50 };
const FILE_PAGE = { max: 1_000, standard: 1_000 };

const when = (wrong: boolean, field: string, description: string): readonly Violation[] => (wrong ? [{ field, description }] : []);

/** Fields of a new session that callers may set. The controller adds the rest. */
const Asked = SessionRequest.pick({ template: true, ttlMs: true }).extend({
  requestId: RequestId.optional(),
  limits: SandboxLimits.optional(),
  labels: SessionRequest.shape.labels.refine(
    (labels) => Object.keys(labels).length <= LABELS_MAX,
    `must not have more than ${LABELS_MAX} entries`,
  ),
});
const Renewed = SessionRequest.pick({ ttlMs: true });
const Executed = z.object({ executionId: RequestId.optional(), limits: SandboxLimits.optional() });

function codeViolations({ code, language, stdin, resumeToken }: ExecuteRequest): readonly Violation[] {
  const shell = language === Language.SHELL;
  return [
    ...when(code === '' && resumeToken === '', 'code', 'must not be empty'),
    ...when(code.length > CODE_MAX_CHARS, 'code', `must not be longer than ${CODE_MAX_CHARS} characters`),
    ...when(shell && code.includes('\0'), 'code', 'must not hold a NUL character; no shell takes one'),
    ...when(!shell && stdin !== '', 'stdin', 'goes with LANGUAGE_SHELL only; a cell has no standard input'),
  ];
}

/** Adds an execution id if there is none, so that the execution can be followed again. @throws EtudeError INVALID_ARGUMENT */
function checkedExecute(request: ExecuteRequest): ExecuteRequest {
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

/** Checks a file request and returns the sandbox's id. @throws EtudeError INVALID_ARGUMENT with fields below `root` */
function checkedFile(
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

export interface SandboxDeps {
  readonly sessions: SandboxSessionStore;
  readonly router: SandboxRouter;
}

/**
 * `etude.v1.Sandboxes`. Stored sessions are read here; all other calls go to the controller that owns the sandbox.
 * Each lookup uses the caller's tenant. So the sandbox of another tenant is not found, and no controller is asked for it.
 */
export const sandboxCalls = {
  createSandbox(request, call, deps) {
    fromWire(Asked, CreateSandboxRequestSchema, request);
    // Always has a request id, so that it can be tried at several controllers.
    const checked = { ...request, requestId: request.requestId || randomUUID() };
    return deps.router.create(call, (client, settings) => client.createSandbox(checked, settings));
  },

  async getSandbox({ name }, call, deps) {
    const { session } = await deps.router.session(call.tenant, sandboxIdOfName(name));
    return sandboxMessage(session);
  },

  async listSandboxes(request, call, deps) {
    deps.router.requireOn();
    const { tenant } = call;
    const pageSize = boundedCount(request.pageSize, 'page_size', PAGE);
    const state = wordOf(SandboxStateSchema, request.state, 'state') as SandboxSession['state'] | undefined;
    const bound = ['ListSandboxes', tenant, state];
    const after = afterPageToken(request.pageToken, bound);
    const page = await deps.sessions.list(tenant, { pageSize, ...(state ? { state } : {}), ...(after ? { after } : {}) });
    return { sandboxes: page.items.map(sandboxMessage), nextPageToken: pageToken(page.nextAfter, bound) };
  },

  renewSandbox(request, call, deps) {
    const id = sandboxIdOfName(request.name);
    fromWire(Renewed, RenewSandboxRequestSchema, request);
    return deps.router.ask(id, call, (client, settings) => client.renewSandbox(request, settings));
  },

  async closeSandbox(request, call, deps) {
    const id = sandboxIdOfName(request.name);
    const { session } = await deps.router.session(call.tenant, id);
    if (session.state !== 'open') return sandboxMessage(session);
    return deps.router.ask(id, call, (client, settings) => client.closeSandbox(request, settings));
  },

  async *execute(request, call, deps) {
    const id = sandboxIdOfName(request.name);
    const checked = checkedExecute(request);
    await deps.router.session(call.tenant, id);
    yield* followExecution(deps.router, id, checked, call);
  },

  cancelExecution(request, call, deps) {
    const id = sandboxIdOfName(request.name);
    if (request.executionId === '') throw invalidField('execution_id', 'is required; every event of the execution has it');
    parseField(RequestId, request.executionId, 'execution_id');
    return deps.router.ask(id, call, (client, settings) => client.cancelExecution(request, settings));
  },

  /** Forwards an upload no faster than the owner reads it. Nothing is kept here, so the caller must continue after an interruption. */
  async uploadFile(requests, call, { router }) {
    const incoming = requests[Symbol.asyncIterator]();
    const first = await incoming.next();
    if (first.done || first.value.part.case !== 'header') throw invalidField('header', 'is required in the first message of an upload');
    const id = checkedFile(first.value.part.value, 'header.');
    const client = await router.owner(call.tenant, id);
    try {
      return await client.uploadFile(withRest(first.value, incoming), forwardSettings(call));
    } catch (error) {
      call.signal.throwIfAborted();
      throw forwardedError(error);
    }
  },

  async *downloadFile(request, call, { router }) {
    const id = checkedFile(request);
    await router.session(call.tenant, id);
    let { offset } = request;
    for await (const part of router.follow(id, call, (client, settings) => client.downloadFile({ ...request, offset }, settings))) {
      offset += BigInt(part.chunk.byteLength);
      yield part;
    }
  },

  getSandboxFile(request, call, deps) {
    const id = checkedFile(request);
    return deps.router.ask(id, call, (client, settings) => client.getSandboxFile(request, settings));
  },

  listSandboxFiles(request, call, deps) {
    const id = sandboxIdOfName(request.name);
    const tooLong = request.pageToken.length > TOKEN_MAX_CHARS;
    refuseAny(when(tooLong, 'page_token', 'was not made by this server; pass next_page_token of the answer before, unchanged'));
    const checked = { ...request, pageSize: boundedCount(request.pageSize, 'page_size', FILE_PAGE) };
    return deps.router.ask(id, call, (client, settings) => client.listSandboxFiles(checked, settings));
  },

  deleteSandboxFile(request, call, deps) {
    const id = checkedFile(request);
    return deps.router.ask(id, call, (client, settings) => client.deleteSandboxFile(request, settings));
  },
} satisfies Handlers<typeof Sandboxes, SandboxDeps>;

async function* withRest(first: UploadFileRequest, rest: AsyncIterator<UploadFileRequest>): AsyncGenerator<UploadFileRequest> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield checkedChunk(next.value);
}

/** @throws EtudeError INVALID_ARGUMENT */
function checkedChunk(request: UploadFileRequest): UploadFileRequest {
  const { part } = request;
  if (part.case !== 'chunk') throw invalidField(part.case ?? 'part', 'must be a chunk in every message but the first');
  const bytes = part.value.byteLength;
  if (bytes <= FILE_CHUNK_BYTES_MAX) return request;
  throw invalidField('chunk', `must not have more than ${FILE_CHUNK_BYTES_MAX} bytes; it has ${bytes}. Send several`);
}
