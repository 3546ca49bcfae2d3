import { create, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  ExecuteEventSchema,
  type ExecutionOutcome,
  ExecuteRequestSchema,
  Language,
  type RichOutput,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { sandboxName } from '@etude/contracts/ids';
import type { Display } from '@etude/contracts/sandbox';
import type { CellOutcome } from '@etude/domain/tools/code-sessions';
import type { CallContext } from '../calls/call-context.js';
import { exitOf, followExecution } from '../sandboxes/follow-execution.js';
import type { SandboxRouter } from '../sandboxes/sandbox-router.js';

/** How long a stopped call waits for its cell to be stopped. */
const CANCEL_MS = 5_000;

/**
 * Runs one cell to its end. The same execution again is followed from its beginning, and runs nothing.
 *
 * @throws EtudeError as `etude.v1.Sandboxes`; the signal's reason, after the cell was stopped
 */
export async function runCell(
  router: SandboxRouter,
  id: string,
  { executionId, code }: { readonly executionId: string; readonly code: string },
  context: CallContext,
): Promise<CellOutcome> {
  const name = sandboxName(id);
  const request = create(ExecuteRequestSchema, { name, executionId, code, language: Language.PYTHON });
  const told = { stdout: '', stderr: '', displays: [] as Display[] };
  let result: ExecutionOutcome | null = null;
  try {
    for await (const said of followExecution(router, id, request, context)) {
      const { event } = create(ExecuteEventSchema, said);
      if (event.case === 'stdout' || event.case === 'stderr') told[event.case] += event.value;
      if (event.case === 'display') told.displays.push(displayOf(event.value));
      if (event.case === 'result') result = event.value;
    }
  } catch (error) {
    if (context.signal.aborted) await stop(router, id, { name, executionId }, context);
    throw error;
  }
  return { ...told, ...endOf(result) };
}

function endOf(result: ExecutionOutcome | null): Omit<CellOutcome, 'stdout' | 'stderr' | 'displays'> {
  const { exit = 'infra', exitCode, signal, error, stateLost = true } = result ?? {};
  const raised = error && { type: error.type, message: error.message, line: error.line || null };
  return { exit: exitOf(exit), exitCode: exitCode ?? null, signal: signal ?? null, stateLost, ...(raised ? { error: raised } : {}) };
}

/** Text and JSON of what was shown; pictures are files where they are wanted. */
function displayOf({ text, json }: RichOutput): Display {
  const values = Object.entries(json).map(([mediaType, value]) => [mediaType, toJson(ValueSchema, value)] as const);
  return { ...text, ...Object.fromEntries(values) };
}

/** The caller is gone: nobody is left to hear that this did not work, and the cell's limits end it. */
async function stop(router: SandboxRouter, id: string, cell: { name: string; executionId: string }, context: CallContext): Promise<void> {
  const own = { ...context, signal: AbortSignal.timeout(CANCEL_MS) };
  await router.ask(id, own, (client, settings) => client.cancelExecution(cell, settings)).catch(() => undefined);
}
