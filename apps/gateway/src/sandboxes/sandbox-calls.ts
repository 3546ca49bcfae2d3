import type { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import type { Handlers } from '../calls/calls.js';
import { followExecution } from '../controllers/follow-execution.js';
import { SandboxRouter } from '../controllers/sandbox-router.js';
import { afterPageToken, pageToken, sandboxIdOfName } from '../wire/names.js';
import { boundedCount } from '../wire/validation.js';
import {
  checkedCreate,
  checkedExecute,
  checkedFile,
  checkedFileList,
  checkedRenew,
  checkedState,
  checkExecutionId,
} from './sandbox-requests.js';
import { forwardDownload, forwardUpload } from './transfer-file.js';

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
    const checked = checkedRenew(request);
    return deps.router.ask(id, call, (client, settings) => client.renewSandbox(checked, settings));
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

  uploadFile(requests, call, deps) {
    return forwardUpload(deps.router, requests, call);
  },

  async *downloadFile(request, call, deps) {
    const id = checkedFile(request);
    await deps.router.session(call.tenant, id);
    yield* forwardDownload(deps.router, id, request, call);
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
