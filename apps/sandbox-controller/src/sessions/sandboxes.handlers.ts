import { hash, randomUUID, timingSafeEqual } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import {
  type CreateSandboxRequest,
  CreateSandboxRequestSchema,
  type ExecuteRequest,
  ExecuteRequestSchema,
  RenewSandboxRequestSchema,
  type Sandboxes,
  SearchSandboxFilesRequestSchema,
  type UploadFileHeader,
  type UploadFileRequest,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { ServedCall, ServiceHandlers } from '@etude/contracts/grpc-server';
import { RequestId, TenantId } from '@etude/contracts/ids';
import { FILE_CHUNK_BYTES_MAX, SandboxLimits, type SandboxRun, type SandboxSession, SessionRequest } from '@etude/contracts/sandbox';
import {
  type DownloadFileInit,
  type ExecuteEventInit,
  executionOutcomeMessage,
  richOutputMessage,
  type SandboxFileInit,
  sandboxFileMessage,
  sandboxLimitsOf,
  sandboxMessage,
  toolAnswerOf,
  toolCallMessage,
} from '@etude/contracts/sandbox-wire';
import { CellTools, Scratchpad } from '@etude/contracts/scratchpad';
import type { SpanStart, Tracing } from '@etude/contracts/tracing';
import { fromWire } from '@etude/contracts/wire/messages';
import { invalidField, opened } from '@etude/contracts/wire/validation';
import type { ClaimedSandbox, SandboxFiles } from '@etude/sandbox/sandbox-driver';
import { z } from 'zod';
import type { ExecutionEvent } from './execution-log.js';
import type { SessionExecution } from './held-session.js';
import type { SessionHost } from './session-host.js';

interface InternalCaller {
  readonly tenant: string;
  /** Whether the caller's sandboxes don't count towards the tenant's limit. */
  readonly uncounted: boolean;
  readonly signal: AbortSignal;
  readonly traceparent: string | undefined;
}

const TENANT_METADATA = 'etude-tenant';
const UNCOUNTED_METADATA = 'etude-uncounted';

const digest = (text: string) => hash('sha256', text, 'buffer');

/** Returns a function that admits callers with the token, compared in constant time. It throws EtudeError UNAUTHENTICATED, TENANT_MISSING. */
export function internalCallers(token: string): (call: ServedCall) => InternalCaller {
  const expected = digest(`Bearer ${token}`);
  return ({ metadata, signal }) => {
    const given = metadata.get('authorization');
    const [header] = given;
    const known = timingSafeEqual(digest(typeof header === 'string' ? header : ''), expected);
    if (!known || given.length !== 1) {
      const message =
        'The call has no valid ETUDE_SANDBOX_INTERNAL_TOKEN. Call the gateway instead, or give gateway and controller the same token.';
      throw new EtudeError('UNAUTHENTICATED', message);
    }
    const tenants = metadata.get(TENANT_METADATA);
    const tenant = TenantId.safeParse(tenants[0]);
    if (!tenant.success || tenants.length !== 1)
      throw new EtudeError('TENANT_MISSING', `a gateway must send the authenticated tenant once, as metadata "${TENANT_METADATA}"`);
    const traceparent = metadata.get('traceparent')[0]?.toString();
    return { tenant: tenant.data, uncounted: metadata.get(UNCOUNTED_METADATA).length > 0, signal, traceparent };
  };
}

const FILES_PAGE_MAX = 1_000;

/** Gateways answer these calls themselves, because they can read the records of sessions in Redis. */
const atGateway = () =>
  Promise.reject(new EtudeError('FAILED_PRECONDITION', 'A sandbox controller does not answer this call. Call the gateway instead.'));

function bytesOf(bytes: bigint, field: string): number {
  if (bytes < 0n || bytes > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidField(field, 'must be a number of bytes');
  return Number(bytes);
}

/** `etude.v1.Sandboxes` of a controller, for gateways. Every lookup uses the tenant that the gateway authenticated. */
export function sandboxesHandlers(host: SessionHost, tracing: Tracing): ServiceHandlers<typeof Sandboxes, InternalCaller> {
  const find = (name: string, tenant: string) => host.find(tenant, sandboxIdOf(name));
  async function within<T>(name: string, tenant: string, act: (sandbox: ClaimedSandbox) => Promise<T>): Promise<T> {
    const held = await find(name, tenant);
    return act(held.sandbox).catch((error: unknown) => {
      throw held.explain(error);
    });
  }
  const withFiles = <T>(name: string, tenant: string, act: (files: SandboxFiles) => Promise<T>) =>
    within(name, tenant, ({ files }) => act(files));
  return {
    createSandbox: async (request, { tenant, uncounted, signal }) =>
      sandboxMessage(await host.open({ ...sessionRequestOf(tenant, request), uncounted }, signal)),
    getSandbox: atGateway,
    listSandboxes: atGateway,
    async renewSandbox(request, { tenant }) {
      const { ttlMs } = fromWire(Renewed, RenewSandboxRequestSchema, request);
      return sandboxMessage(await host.renew(tenant, sandboxIdOf(request.name), ttlMs));
    },
    closeSandbox: async ({ name }, { tenant }) => sandboxMessage(await host.close(tenant, sandboxIdOf(name))),
    async *execute(request, { tenant, signal, traceparent }) {
      const held = await find(request.name, tenant);
      const execution = executionOf(request, held.session);
      let seen = eventsSeen(request.resumeToken, execution.executionId);
      // A caller with a token has seen an event, so an unknown execution must not run again.
      const log = await held.execute(execution, seen === 0);
      const start: SpanStart = { ...(traceparent && { parent: traceparent }), values: { 'etude.execution': execution.executionId } };
      if (seen === 0) void tracing.span('sandbox.run', start, () => held.settled());
      for await (const event of log.read(seen, signal)) yield eventMessage(execution.executionId, (seen += 1), event);
    },
    async answerToolCall(request, { tenant }) {
      await within(request.name, tenant, (sandbox) => sandbox.answer(request.executionId, request.number, toolAnswerOf(request)));
      return {};
    },
    async cancelExecution({ name, executionId }, { tenant }) {
      return { stopped: (await find(name, tenant)).cancel(executionId) };
    },
    async uploadFile(requests, { tenant, signal }) {
      const { head, rest } = await opened(requests, 'header');
      return withFiles(head.name, tenant, (files) => writeFile(files, head, rest, signal));
    },
    async *downloadFile({ name, path, offset }, { tenant, signal }) {
      const held = await find(name, tenant);
      try {
        yield* readFile(held.sandbox.files, path, bytesOf(offset, 'offset'), signal);
      } catch (error) {
        throw held.explain(error);
      }
    },
    getSandboxFile: ({ name, path }, { tenant }) => withFiles(name, tenant, (files) => statFile(files, path)),
    async listSandboxFiles({ name, pageSize, pageToken }, { tenant }) {
      if (pageSize < 0 || pageSize > FILES_PAGE_MAX) throw invalidField('page_size', `must be between 0 and ${FILES_PAGE_MAX}`);
      const after = Buffer.from(pageToken, 'base64url').toString('utf8');
      const { entries, more } = await withFiles(name, tenant, (files) => files.list(after, pageSize || FILES_PAGE_MAX));
      const last = entries.at(-1);
      return {
        files: entries.map((entry) => sandboxFileMessage(entry)),
        nextPageToken: more && last ? Buffer.from(last.path).toString('base64url') : '',
      };
    },
    async searchSandboxFiles(request, { tenant }) {
      const { text, limit } = fromWire(Searched, SearchSandboxFilesRequestSchema, request);
      const { lines, total } = await withFiles(request.name, tenant, (files) => files.search(text, limit));
      return { lines: [...lines], total };
    },
    async deleteSandboxFile({ name, path }, { tenant }) {
      await withFiles(name, tenant, (files) => files.delete(path));
      return {};
    },
  };
}

/** Describes a file. If its upload is unfinished, says how far it is. @throws EtudeError NOT_FOUND */
async function statFile(files: SandboxFiles, path: string): Promise<SandboxFileInit> {
  const { entry, uploadedBytes } = await files.stat(path);
  if (!entry && uploadedBytes === 0)
    throw new EtudeError('NOT_FOUND', `The sandbox has no file ${JSON.stringify(path)}. List its files.`, { metadata: { path } });
  return entry ? sandboxFileMessage(entry, uploadedBytes) : { path, uploadedBytes: BigInt(uploadedBytes) };
}

/**
 * Writes each chunk before it takes the next. The file appears when it has `sizeBytes`; without `sizeBytes`, at the end of the stream.
 *
 * @throws EtudeError ABORTED for fewer bytes than `sizeBytes`, INVALID_ARGUMENT for more; those of `SandboxFiles.write`
 */
async function writeFile(
  files: SandboxFiles,
  header: UploadFileHeader,
  chunks: AsyncIterable<UploadFileRequest>,
  signal: AbortSignal,
): Promise<SandboxFileInit> {
  const { path } = header;
  const sizeBytes = header.sizeBytes === undefined ? undefined : bytesOf(header.sizeBytes, 'size_bytes');
  let at = bytesOf(header.offset, 'offset');
  const sent = chunks[Symbol.asyncIterator]();
  // Doesn't wait for the end of the stream once the file is complete, because the server needs 50 ms to tell an end from a cancel.
  for (let next; at !== sizeBytes && (next = await sent.next()).done !== true;) {
    const { part } = next.value;
    signal.throwIfAborted();
    if (part.case !== 'chunk') throw invalidField('chunk', 'must be in every message after the header');
    if (at + part.value.length > (sizeBytes ?? Infinity))
      throw invalidField('size_bytes', `must be the size of the whole file, but more than ${sizeBytes} bytes arrived`);
    for (let from = 0; from < part.value.length; from += FILE_CHUNK_BYTES_MAX)
      at = await files.write(path, at, part.value.subarray(from, from + FILE_CHUNK_BYTES_MAX), false);
  }
  signal.throwIfAborted();
  if (sizeBytes !== undefined && at !== sizeBytes) {
    const message = `The upload of ${JSON.stringify(path)} ended after ${at} of ${sizeBytes} bytes. Continue with offset ${at}, or delete the file and start again.`;
    throw new EtudeError('ABORTED', message, { metadata: { path, uploadedBytes: String(at) } });
  }
  await files.write(path, at, new Uint8Array(), true);
  return statFile(files, path);
}

/** Yields at least one chunk, so that the caller learns the size of an empty file. */
async function* readFile(files: SandboxFiles, path: string, offset: number, signal: AbortSignal): AsyncGenerator<DownloadFileInit> {
  for (let at = offset; ;) {
    signal.throwIfAborted();
    const { data, sizeBytes } = await files.read(path, at, FILE_CHUNK_BYTES_MAX);
    if (data.length > 0 || at === offset) yield { chunk: data, sizeBytes: BigInt(sizeBytes) };
    at += data.length;
    if (data.length < FILE_CHUNK_BYTES_MAX) return;
  }
}

/** Gateways and rollout workers pass only valid names of sandboxes. */
const sandboxIdOf = (name: string) => name.slice('sandboxes/'.length);

const Asked = SessionRequest.omit({ tenant: true });
const Renewed = SessionRequest.pick({ ttlMs: true });
const Executed = z.object({
  executionId: RequestId.optional(),
  language: z.enum(['python', 'shell']).optional(),
  code: z.string().max(1_000_000),
  limits: SandboxLimits.optional(),
  tools: CellTools.optional(),
  scratchpad: Scratchpad.optional(),
});
const Searched = z.object({ text: z.string().min(1).max(1_000), limit: z.number().int().min(1).max(1_000).default(100) });

/** @throws EtudeError INVALID_ARGUMENT */
function sessionRequestOf(tenant: string, request: CreateSandboxRequest): SessionRequest {
  const { requestId, limits = {} } = request;
  const asked = { ...request, requestId: requestId || `made-${randomUUID()}`, limits };
  return { tenant, ...fromWire(Asked, CreateSandboxRequestSchema, asked) };
}

/** @throws EtudeError INVALID_ARGUMENT */
function executionOf(request: ExecuteRequest, session: SandboxSession): SessionExecution {
  const asked = fromWire(Executed, ExecuteRequestSchema, request);
  const run = runOf(asked, request.stdin, session.scratchpad ?? false);
  return { executionId: asked.executionId ?? `e-${randomUUID()}`, run, limits: limitsOf(request, session.limits) };
}

function runOf({ language, code, tools, scratchpad }: z.infer<typeof Executed>, stdin: string, hasScratchpad: boolean): SandboxRun {
  if (language === 'shell') {
    if (tools || scratchpad) throw invalidField(tools ? 'tools' : 'scratchpad', 'needs LANGUAGE_PYTHON');
    return { kind: 'command', command: code, stdin };
  }
  if (stdin !== '') throw invalidField('stdin', 'needs LANGUAGE_SHELL');
  const begin = scratchpad ?? (hasScratchpad ? Scratchpad.parse({}) : undefined);
  return { kind: 'cell', code, ...(tools ? { tools } : {}), ...(begin ? { scratchpad: begin } : {}) };
}

/** The limits of one execution. Memory and disk may not exceed those of the session. */
function limitsOf(request: ExecuteRequest, session: SandboxLimits): SandboxLimits {
  const limits = { ...session, ...sandboxLimitsOf(request.limits) };
  if (limits.memoryMiB > session.memoryMiB)
    throw invalidField('limits.memory_mib', `must be at most ${session.memoryMiB}, the limit of this sandbox since its creation`);
  if (limits.diskMiB > session.diskMiB)
    throw invalidField('limits.disk_mib', `must be at most ${session.diskMiB}, the limit of this sandbox since its creation`);
  return limits;
}

/** How many events the caller has seen. @throws EtudeError INVALID_ARGUMENT for an unknown token or another execution's */
function eventsSeen(token: string, executionId: string): number {
  if (token === '') return 0;
  const [, of, seen] = /^([^]*)\/([1-9]\d{0,8})$/.exec(Buffer.from(token, 'base64url').toString('utf8')) ?? [];
  if (of === undefined) throw invalidField('resume_token', 'is not a token of this server. Pass the resume_token of an event, unchanged.');
  if (of !== executionId) throw invalidField('resume_token', `belongs to execution "${of}". Pass that execution_id with it.`);
  return Number(seen);
}

function contentOf(event: ExecutionEvent): ExecuteEventInit['event'] {
  if (event.kind === 'display') return { case: 'display', value: richOutputMessage(event.display) };
  if (event.kind === 'call') return { case: 'toolCall', value: toolCallMessage(event.call) };
  if (event.kind === 'outcome') return { case: 'result', value: executionOutcomeMessage(event.result) };
  return { case: event.kind, value: event.text };
}

const eventMessage = (executionId: string, number: number, event: ExecutionEvent): ExecuteEventInit => ({
  executionId,
  resumeToken: Buffer.from(`${executionId}/${number}`).toString('base64url'),
  event: contentOf(event),
});
