import { setTimeout as sleep } from 'node:timers/promises';
import { create, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import {
  ExecuteEventSchema,
  ExecuteRequestSchema,
  type ExecutionOutcome,
  Language,
  type RichOutput,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { sandboxName } from '@etude/contracts/ids';
import type { Display } from '@etude/contracts/sandbox';
import type { CellOutcome } from '@etude/domain/tools/code-sessions';
import type { CallContext } from '../calls/caller.js';
import { exitOf, followExecution } from '../controllers/follow-execution.js';
import type { SandboxRouter } from '../controllers/sandbox-router.js';

/** How long a stopped call waits until its cell is stopped. */
const CANCEL_MS = 5_000;

export interface RunCellDeps {
  readonly router: SandboxRouter;
  /** Called for failures after the caller has left. */
  readonly log: (message: string, details: object) => void;
}

/** By then, the cell of a caller that left has ended. A cell that still runs belongs to another call. */
const BUSY_MS = 1_500;
const RETRY_MS = 200;
const RETRY_AFTER_MS = 1_000;

interface Cell {
  readonly executionId: string;
  readonly code: string;
}

/**
 * Runs one cell to its end. Repeating an execution follows it from its beginning and runs nothing again.
 *
 * @throws EtudeError as `etude.v1.Sandboxes`; SANDBOX_CAPACITY while the sandbox runs another call's cell; the signal's reason, after the
 *   cell was stopped
 */
export async function runCell(deps: RunCellDeps, id: string, cell: Cell, context: CallContext): Promise<CellOutcome> {
  for (const since = performance.now(); ;) {
    try {
      return await runFree(deps, id, cell, context);
    } catch (error) {
      // The controller names the execution that is running.
      if (errorCode(error) !== 'FAILED_PRECONDITION' || errorDetails(error).metadata?.['executionId'] === undefined) throw error;
      if (performance.now() - since > BUSY_MS) throw busyElsewhere(id, error as EtudeError);
      await sleep(RETRY_MS, undefined, { signal: context.signal });
    }
  }
}

function busyElsewhere(id: string, error: EtudeError): EtudeError {
  const message =
    `${sandboxName(id)} runs code for another call, which came through another gateway or etude.v1.Sandboxes; the code of this one did not run. ` +
    'Send it again when that one has ended, or use another session.';
  return new EtudeError('SANDBOX_CAPACITY', message, { ...error.details, retryAfterMs: RETRY_AFTER_MS }, { cause: error });
}

async function runFree(deps: RunCellDeps, id: string, { executionId, code }: Cell, context: CallContext): Promise<CellOutcome> {
  const name = sandboxName(id);
  const request = create(ExecuteRequestSchema, { name, executionId, code, language: Language.PYTHON });
  const told = { stdout: '', stderr: '', displays: [] as Display[] };
  let result: ExecutionOutcome | null = null;
  try {
    for await (const said of followExecution(deps.router, id, request, context)) {
      const { event } = create(ExecuteEventSchema, said);
      if (event.case === 'stdout' || event.case === 'stderr') told[event.case] += event.value;
      if (event.case === 'display') told.displays.push(displayOf(event.value));
      if (event.case === 'result') result = event.value;
    }
  } catch (error) {
    if (context.signal.aborted) await stop(deps, id, { name, executionId }, context);
    throw error;
  }
  return { ...told, ...endOf(result) };
}

function endOf(result: ExecutionOutcome | null): Omit<CellOutcome, 'stdout' | 'stderr' | 'displays'> {
  const { exit = 'infra', exitCode, signal, error, stateLost = true } = result ?? {};
  const raised = error && { type: error.type, message: error.message, line: error.line || null };
  return { exit: exitOf(exit), exitCode: exitCode ?? null, signal: signal ?? null, stateLost, ...(raised ? { error: raised } : {}) };
}

/** The text and JSON of an output. Images are left out; code can write them to files. */
function displayOf({ text, json }: RichOutput): Display {
  const values = Object.entries(json).map(([mediaType, value]) => [mediaType, toJson(ValueSchema, value)] as const);
  return { ...text, ...Object.fromEntries(values) };
}

/** Stops the cell of a caller that left. A failure is only logged, since the cell's limits end it anyway. */
async function stop(
  { router, log }: RunCellDeps,
  id: string,
  cell: { readonly name: string; readonly executionId: string },
  context: CallContext,
): Promise<void> {
  const own = { ...context, signal: AbortSignal.timeout(CANCEL_MS) };
  try {
    await router.ask(id, own, (client, settings) => client.cancelExecution(cell, settings));
  } catch (error) {
    log('A cell whose caller is gone could not be stopped; its limits end it', { ...cell, err: error });
  }
}
