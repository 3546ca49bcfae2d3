import { type Sandboxes, SandboxStateSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { CallSettings } from '@etude/contracts/grpc-client';
import type { SandboxSession } from '@etude/contracts/sandbox';
import { sandboxMessage } from '@etude/contracts/sandbox-wire';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { randomUUID } from 'node:crypto';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { type ControllerClient, forwardedError } from '@etude/queue/sandboxes/controllers';
import { isOfRollout } from '@etude/queue/sandboxes/router-work-sandboxes';
import { forwardSettings, SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { wordOf } from '@etude/contracts/wire/messages';
import { askedPage, sandboxIdOfName } from '../wire/names.js';
import { opened } from '@etude/contracts/wire/validation';

const PAGE = { max: 200, standard: 50 };

interface SandboxDeps {
  readonly sessions: SandboxSessionStore;
  readonly router: SandboxRouter;
}

/**
 * `etude.v1.Sandboxes`. The gateway reads stored sessions itself. The controller that owns a sandbox gets all other calls of the sandbox,
 * and checks them. Each lookup uses the caller's tenant, so a sandbox of another tenant is not found.
 */
export const sandboxCalls = {
  createSandbox(request, call, deps) {
    // Without a request id, a retry at another controller could create a second sandbox.
    const repeatable = { ...request, requestId: request.requestId || randomUUID() };
    return deps.router.create(call, (client, settings) => client.createSandbox(repeatable, settings));
  },

  async getSandbox({ name }, call, deps) {
    const { session } = await deps.router.session(call.tenant, sandboxIdOfName(name));
    return sandboxMessage(session);
  },

  async listSandboxes(request, call, deps) {
    deps.router.requireOn();
    const { tenant } = call;
    const state = wordOf(SandboxStateSchema, request.state, 'state') as SandboxSession['state'] | undefined;
    const { pageSize, after, tokenOf } = askedPage(request, PAGE, ['ListSandboxes', tenant, state]);
    const page = await deps.sessions.list(tenant, { pageSize, ...(state ? { state } : {}), ...(after ? { after } : {}) });
    return { sandboxes: page.items.filter((session) => !isOfRollout(session)).map(sandboxMessage), nextPageToken: tokenOf(page.nextAfter) };
  },

  renewSandbox: (request, call, deps) => asked(request, call, deps, (client) => client.renewSandbox),

  async closeSandbox(request, call, deps) {
    const { session } = await deps.router.session(call.tenant, sandboxIdOfName(request.name));
    return session.state === 'open' ? asked(request, call, deps, (client) => client.closeSandbox) : sandboxMessage(session);
  },

  /** Adds an execution id if it is absent, because the router needs the id to continue after a lost connection. */
  execute(request, call, { router }) {
    return router.execute(sandboxIdOfName(request.name), { ...request, executionId: request.executionId || randomUUID() }, call);
  },

  answerToolCall: (request, call, deps) => asked(request, call, deps, (client) => client.answerToolCall),
  cancelExecution: (request, call, deps) => asked(request, call, deps, (client) => client.cancelExecution),

  /** Forwards an upload no faster than the owner reads it. The gateway keeps nothing, so the caller must resume an interrupted upload. */
  async uploadFile(requests, call, { router }) {
    const { head, rest } = await opened(requests, 'header');
    const client = await router.owner(call.tenant, sandboxIdOfName(head.name, 'header.name'));
    async function* all() {
      yield { part: { case: 'header' as const, value: head } };
      yield* rest;
    }
    try {
      return await client.uploadFile(all(), forwardSettings(call));
    } catch (error) {
      call.signal.throwIfAborted();
      throw forwardedError(error);
    }
  },

  async *downloadFile(request, call, { router }) {
    const id = sandboxIdOfName(request.name);
    let { offset } = request;
    for await (const part of router.follow(id, call, (client, settings) => client.downloadFile({ ...request, offset }, settings))) {
      offset += BigInt(part.chunk.byteLength);
      yield part;
    }
  },

  getSandboxFile: (request, call, deps) => asked(request, call, deps, (client) => client.getSandboxFile),
  listSandboxFiles: (request, call, deps) => asked(request, call, deps, (client) => client.listSandboxFiles),
  searchSandboxFiles: (request, call, deps) => asked(request, call, deps, (client) => client.searchSandboxFiles),
  deleteSandboxFile: (request, call, deps) => asked(request, call, deps, (client) => client.deleteSandboxFile),
} satisfies Handlers<typeof Sandboxes, SandboxDeps>;

/** Forwards a request to the owner of the sandbox that it names. */
function asked<R extends { readonly name: string }, T>(
  request: R,
  call: CallContext,
  { router }: SandboxDeps,
  callOf: (client: ControllerClient) => (request: R, settings: CallSettings) => Promise<T>,
): Promise<T> {
  return router.ask(sandboxIdOfName(request.name), call, (client, settings) => callOf(client)(request, settings));
}
