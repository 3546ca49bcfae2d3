import type { MessageInitShape } from '@bufbuild/protobuf';
import { errorCode } from '@etude/contracts/errors';
import type { ExecuteEventSchema, ExecuteRequest } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { EXIT_REASONS, type ExitReason } from '@etude/contracts/sandbox';
import type { CallContext } from '../calls/caller.js';
import type { SandboxRouter } from './sandbox-router.js';

type EventInit = MessageInitShape<typeof ExecuteEventSchema>;

/** Errors after which no controller can continue the execution. */
const OVER: ReadonlySet<string> = new Set(['NOT_FOUND', 'FAILED_PRECONDITION', 'SANDBOX_UNAVAILABLE']);

/** The exit reason at the start of a state reason: "evicted: the node was low on memory". */
export function exitOf(stateReason: string): ExitReason {
  const word = /^[a-z_]+/.exec(stateReason)?.[0];
  return EXIT_REASONS.find((reason) => reason === word) ?? 'infra';
}

/**
 * Follows one execution at the owner of its sandbox. If that controller is lost, the next owner continues after the last event.
 * So no event is missed or repeated. If nobody takes over, the last event says why.
 *
 * @throws EtudeError as the controller says, if no event was sent yet, or if the caller can continue with its resume token
 */
export async function* followExecution(
  router: SandboxRouter,
  id: string,
  first: ExecuteRequest,
  context: CallContext,
): AsyncGenerator<EventInit> {
  let request = first;
  try {
    for await (const event of router.follow(id, context, (client, settings) => client.execute(request, settings))) {
      request = { ...request, resumeToken: event.resumeToken };
      yield event;
      if (event.event.case === 'result') return;
    }
  } catch (error) {
    if (context.signal.aborted || request === first || !OVER.has(errorCode(error))) throw error;
    yield await lostEvent(router, request, id, context.tenant, error);
  }
}

/** The last event of an execution whose sandbox or controller was lost. @throws the given error, if the caller ended the sandbox */
async function lostEvent(router: SandboxRouter, request: ExecuteRequest, id: string, tenant: string, error: unknown): Promise<EventInit> {
  const { state, stateReason } = (await router.session(tenant, id)).session;
  if (state === 'closed' || state === 'expired') throw error;
  const reason = state === 'lost' ? stateReason : '';
  const message = reason || (error instanceof Error ? error.message : String(error));
  // The code is the same whether the controller, its successor or only the stored session shows the loss.
  const type = state === 'lost' ? 'SANDBOX_UNAVAILABLE' : errorCode(error);
  return {
    executionId: request.executionId,
    resumeToken: request.resumeToken,
    event: { case: 'result', value: { exit: exitOf(reason), stateLost: true, error: { type, message } } },
  };
}
