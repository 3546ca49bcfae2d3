import { create, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { ExecuteRequestSchema, type ExecutionOutcome, Language, type RichOutput } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { sandboxName } from '@etude/contracts/ids';
import { type Display, EXIT_REASONS } from '@etude/contracts/sandbox';
import type { CellOutcome } from '@etude/domain/tools/code-sessions';
import type { CallContext } from '../calls/caller.js';
import type { SandboxRouter } from '../controllers/sandbox-router.js';

/** How long a stopped call waits until its cell is stopped. */
const CANCEL_MS = 5_000;

interface Cell {
  readonly executionId: string;
  readonly code: string;
}

/**
 * Runs one cell to its end. Repeating an execution follows it from its beginning and runs nothing again.
 *
 * @throws EtudeError as `etude.v1.Sandboxes`; the signal's reason, after the cell was stopped
 */
export async function runCell(router: SandboxRouter, id: string, { executionId, code }: Cell, context: CallContext): Promise<CellOutcome> {
  const name = sandboxName(id);
  const request = create(ExecuteRequestSchema, { name, executionId, code, language: Language.PYTHON });
  const told = { stdout: '', stderr: '', displays: [] as Display[] };
  let result: ExecutionOutcome | null = null;
  try {
    for await (const { event } of router.execute(id, request, context)) {
      if (event.case === 'stdout' || event.case === 'stderr') told[event.case] += event.value;
      if (event.case === 'display') told.displays.push(displayOf(event.value));
      if (event.case === 'result') result = event.value;
    }
  } catch (error) {
    const own = { ...context, signal: AbortSignal.timeout(CANCEL_MS) };
    if (context.signal.aborted) await router.ask(id, own, (client, settings) => client.cancelExecution({ name, executionId }, settings));
    throw error;
  }
  return { ...told, ...endOf(result) };
}

function endOf(result: ExecutionOutcome | null): Omit<CellOutcome, 'stdout' | 'stderr' | 'displays'> {
  const { exit = 'infra', exitCode, signal, error, stateLost = true } = result ?? {};
  const raised = error && { type: error.type, message: error.message, line: error.line || null };
  return {
    exit: EXIT_REASONS.find((reason) => reason === exit) ?? 'infra',
    exitCode: exitCode ?? null,
    signal: signal ?? null,
    stateLost,
    ...(raised ? { error: raised } : {}),
  };
}

/** The text and JSON of an output. Images are left out; code can write them to files. */
function displayOf({ text, json }: RichOutput): Display {
  const values = Object.entries(json).map(([mediaType, value]) => [mediaType, toJson(ValueSchema, value)] as const);
  return { ...text, ...Object.fromEntries(values) };
}
