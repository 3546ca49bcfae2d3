import type { Sandboxes, UploadFileRequest } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { Handlers } from '../calls/calls.js';
import { forwardedError } from '../controllers/controller-client.js';
import { followExecution } from '../controllers/follow-execution.js';
import { forwardSettings, SandboxRouter } from '../controllers/sandbox-router.js';
import { afterPageToken, pageToken, sandboxIdOfName } from '../wire/names.js';
import { boundedCount, invalidField } from '../wire/validation.js';
import {
  checkedChunk,
  checkedCreate,
  checkedExecute,
  checkedFile,
  checkedFileList,
  checkedState,
  checkExecutionId,
  checkRenew,
} from './sandbox-requests.js';

const PAGE = { max: 200, standard: 50 };

export interface SandboxDeps {
  readonly sessions: SandboxSessionStore;
  readonly router: SandboxRouter;
}

/**
 * `etude.v1.Sandboxes`. What is known of a sandbox is read here; everything else goes to the controller that holds it. Every lookup
 * is by the caller's tenant, so another tenant's sandbox is not found, and no controller is asked for it.
 */
export const sandboxCalls = {
  createSandbox(request, call, deps) {
    const checked = checkedCreate(request);
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
    const state = checkedState(request.state);
    const bound = ['ListSandboxes', tenant, state];
    const after = afterPageToken(request.pageToken, bound);
    const page = await deps.sessions.list(tenant, { pageSize, ...(state ? { state } : {}), ...(after ? { after } : {}) });
    return { sandboxes: page.items.map(sandboxMessage), nextPageToken: pageToken(page.nextAfter, bound) };
  },

  renewSandbox(request, call, deps) {
    const id = sandboxIdOfName(request.name);
    checkRenew(request);
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
    checkExecutionId(request.executionId);
    return deps.router.ask(id, call, (client, settings) => client.cancelExecution(request, settings));
  },

  /** Pulled no faster than the owner takes it. One that is cut is the caller's to go on with: what has passed here is kept nowhere. */
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
    const checked = checkedFileList(request);
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
