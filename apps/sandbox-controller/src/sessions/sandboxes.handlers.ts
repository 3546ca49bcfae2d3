import { hash, timingSafeEqual } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { Sandboxes, UploadFileHeader, UploadFileRequest } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { ServedCall, ServiceHandlers } from '@etude/contracts/grpc-server';
import { TenantId } from '@etude/contracts/ids';
import type { SpanStart, Tracing } from '@etude/contracts/tracing';
import {
  type DownloadFileInit,
  type SandboxFileInit,
  sandboxFileMessage,
  sandboxMessage,
  toolAnswerOf,
} from '@etude/contracts/sandbox-wire';
import { invalidField, opened } from '@etude/contracts/wire/validation';
import type { SandboxFiles } from '@etude/sandbox/sandbox-driver';
import { FILE_CHUNK_BYTES_MAX } from '@etude/contracts/sandbox';
import type { SessionExecution } from './held-session.js';
import type { SessionHost } from './session-host.js';
import { eventMessage, executionOf, placeOf, sandboxIdOf, sessionRequestOf, ttlOf } from './session.mapping.js';

interface InternalCaller {
  readonly tenant: string;
  /** Whether its sandboxes are left out of the tenant's count. */
  readonly uncounted: boolean;
  readonly signal: AbortSignal;
  readonly traceparent: string | undefined;
}

const TENANT_METADATA = 'etude-tenant';
const UNCOUNTED_METADATA = 'etude-uncounted';

const digest = (text: string) => hash('sha256', text, 'buffer');

/**
 * Admits gateways and rollout workers, which know the token. Compares in constant time.
 *
 * @throws EtudeError (the function it makes) UNAUTHENTICATED, TENANT_MISSING
 */
export function internalCallers(token: string): (call: ServedCall) => InternalCaller {
  const expected = digest(`Bearer ${token}`);
  return ({ metadata, signal }) => {
    const given = metadata.get('authorization');
    const [header] = given;
    const known = timingSafeEqual(digest(typeof header === 'string' ? header : ''), expected);
    if (!known || given.length !== 1) {
      const message =
        'This address is for gateways, which send ETUDE_SANDBOX_INTERNAL_TOKEN. Call the gateway, or give both the same token.';
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
const FOUND_LINES_DEFAULT = 100;

/** Gateways read the records of sessions from Redis. */
const atGateway = () =>
  Promise.reject(new EtudeError('FAILED_PRECONDITION', 'A sandbox controller does not answer this call. Call the gateway.'));

function bytesOf(bytes: bigint, field: string): number {
  if (bytes < 0n || bytes > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidField(field, 'must be a number of bytes');
  return Number(bytes);
}

function uploadPlaceOf({ path, offset, sizeBytes }: UploadFileHeader): UploadPlace {
  return { path, offset: bytesOf(offset, 'offset'), sizeBytes: sizeBytes === undefined ? undefined : bytesOf(sizeBytes, 'size_bytes') };
}

/** `etude.v1.Sandboxes` of a controller, for gateways. Every lookup uses the tenant that the gateway authenticated. */
export function sandboxesHandlers(host: SessionHost, tracing: Tracing): ServiceHandlers<typeof Sandboxes, InternalCaller> {
  const find = (name: string, tenant: string) => host.find(tenant, sandboxIdOf(name));
  async function withFiles<T>(name: string, tenant: string, act: (files: SandboxFiles) => Promise<T>): Promise<T> {
    const held = await find(name, tenant);
    return act(held.sandbox.files).catch((error: unknown) => {
      throw held.explain(error);
    });
  }
  return {
    createSandbox: async (request, { tenant, uncounted, signal }) =>
      sandboxMessage(await host.open({ ...sessionRequestOf(tenant, request), uncounted }, signal)),
    getSandbox: atGateway,
    listSandboxes: atGateway,
    renewSandbox: async ({ name, ttl }, { tenant }) => sandboxMessage(await host.renew(tenant, sandboxIdOf(name), ttlOf(ttl))),
    closeSandbox: async ({ name }, { tenant }) => sandboxMessage(await host.close(tenant, sandboxIdOf(name))),
    async *execute(request, { tenant, signal, traceparent }) {
      const held = await find(request.name, tenant);
      const execution = executionOf(request, held.session);
      const after = placeOf(request.resumeToken, execution.executionId);
      // A caller with a token has seen an event, so an unknown execution must not run again.
      const log = await held.executions.open(execution, after === null);
      if (after === null) void tracing.span('sandbox.run', runOf(execution, traceparent), () => held.executions.settle());
      for await (const event of log.read(after, signal)) yield eventMessage(execution.executionId, event);
    },
    async answerToolCall(request, { tenant }) {
      const held = await find(request.name, tenant);
      await held.sandbox.answer(request.executionId, request.number, toolAnswerOf(request)).catch((error: unknown) => {
        throw held.explain(error);
      });
      return {};
    },
    async cancelExecution({ name, executionId }, { tenant }) {
      return { stopped: (await find(name, tenant)).executions.cancel(executionId) };
    },
    async uploadFile(requests, { tenant, signal }) {
      const { head, rest } = await opened(requests, 'header');
      return withFiles(head.name, tenant, (files) => writeFile(files, uploadPlaceOf(head), rest, signal));
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
    async searchSandboxFiles({ name, text, limit }, { tenant }) {
      const { lines, total } = await withFiles(name, tenant, (files) => files.search(text, limit || FOUND_LINES_DEFAULT));
      return { lines: [...lines], total };
    },
    async deleteSandboxFile({ name, path }, { tenant }) {
      await withFiles(name, tenant, (files) => files.delete(path));
      return {};
    },
  };
}

/** The span of an execution, which may go on after its caller left. */
const runOf = ({ executionId }: SessionExecution, parent: string | undefined): SpanStart => ({
  ...(parent === undefined ? {} : { parent }),
  values: { 'etude.execution': executionId },
});

/** Describes a file, also one whose upload is unfinished. @throws EtudeError NOT_FOUND */
async function statFile(files: SandboxFiles, path: string): Promise<SandboxFileInit> {
  const { entry, uploadedBytes } = await files.stat(path);
  if (!entry && uploadedBytes === 0)
    throw new EtudeError('NOT_FOUND', `There is no file ${JSON.stringify(path)} in the sandbox.`, { metadata: { path } });
  return entry ? sandboxFileMessage(entry, uploadedBytes) : { path, uploadedBytes: BigInt(uploadedBytes) };
}

/** Where an upload continues, and the size of the whole file where the caller gave it. In bytes. */
interface UploadPlace {
  readonly path: string;
  readonly offset: number;
  readonly sizeBytes: number | undefined;
}

/**
 * Writes each chunk before it takes the next. The file appears after the last chunk: the chunk that completes `sizeBytes`, else the last
 * one of the stream.
 *
 * @throws EtudeError ABORTED for fewer bytes than `sizeBytes`, INVALID_ARGUMENT for more; those of `SandboxFiles.write`
 */
export async function writeFile(
  files: SandboxFiles,
  { path, offset, sizeBytes }: UploadPlace,
  chunks: AsyncIterable<UploadFileRequest>,
  signal: AbortSignal,
): Promise<SandboxFileInit> {
  let at = offset;
  const sent = chunks[Symbol.asyncIterator]();
  // Once the file is whole, the stream's end doesn't matter. The server would wait 50 ms to distinguish it from a cancellation.
  for (let next; at !== sizeBytes && (next = await sent.next()).done !== true;) {
    const { part } = next.value;
    signal.throwIfAborted();
    if (part.case !== 'chunk') throw invalidField('chunk', 'must follow the header in every other message');
    if (at + part.value.length > (sizeBytes ?? Infinity))
      throw invalidField('size_bytes', `must be the size of the whole file; more than ${sizeBytes} bytes arrived`);
    for (let from = 0; from < part.value.length; from += FILE_CHUNK_BYTES_MAX)
      at = await files.write(path, at, part.value.subarray(from, from + FILE_CHUNK_BYTES_MAX), false);
  }
  signal.throwIfAborted();
  if (sizeBytes !== undefined && at !== sizeBytes) {
    const message = `The upload of ${JSON.stringify(path)} ended after ${at} of ${sizeBytes} bytes. Continue with offset ${at}, or start again with 0.`;
    throw new EtudeError('ABORTED', message, { metadata: { path, uploadedBytes: String(at) } });
  }
  await files.write(path, at, new Uint8Array(), true);
  return statFile(files, path);
}

/** Yields at least one chunk, so that the caller learns the size of an empty file. */
export async function* readFile(files: SandboxFiles, path: string, offset: number, signal: AbortSignal): AsyncGenerator<DownloadFileInit> {
  for (let at = offset; ;) {
    signal.throwIfAborted();
    const { data, sizeBytes } = await files.read(path, at, FILE_CHUNK_BYTES_MAX);
    if (data.length > 0 || at === offset) yield { chunk: data, sizeBytes: BigInt(sizeBytes) };
    at += data.length;
    if (data.length < FILE_CHUNK_BYTES_MAX) return;
  }
}
