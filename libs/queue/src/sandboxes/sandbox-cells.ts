import { unlessAborted } from '@etude/contracts/errors';
import type { ExecutionOutcome } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { CallSettings } from '@etude/contracts/grpc-client';
import { sandboxName } from '@etude/contracts/ids';
import { type Display, EXIT_REASONS } from '@etude/contracts/sandbox';
import { cellRequest, displayOf, scratchpadOf, toolAnswerMessage, toolCallOf } from '@etude/contracts/sandbox-wire';
import type { CellToolAnswer, CellToolCall } from '@etude/contracts/scratchpad';
import type { WorkCell, WorkCellOutcome } from '@etude/domain/ports/work-sandboxes';
import type { ControllerClient } from './controllers.js';
import type { RoutedCall, SandboxRouter } from './sandbox-router.js';

/** How long a stopped call waits until its cell is stopped. */
const CANCEL_MS = 5_000;

type Cell = Pick<WorkCell, 'executionId' | 'code'> & Partial<WorkCell>;

/** Answers the calls of a cell without tools, which can't happen. */
const noTools = (): Promise<CellToolAnswer> => Promise.resolve({ success: false, error: 'there are no tools' });

/**
 * Runs one cell to its end. Repeating an execution follows it from its beginning and runs nothing again.
 *
 * @param answer called for each call of a tool; when it throws, the cell is left running
 * @throws EtudeError as `etude.v1.Sandboxes`; what `answer` throws; the signal's reason, after the cell was stopped
 */
export async function runCell(
  router: SandboxRouter,
  id: string,
  cell: Cell,
  context: RoutedCall,
  answer: (call: CellToolCall) => Promise<CellToolAnswer> = noTools,
): Promise<WorkCellOutcome> {
  const name = sandboxName(id);
  const { executionId } = cell;
  const request = cellRequest(name, cell);
  const told = { stdout: '', stderr: '', displays: [] as Display[] };
  try {
    for await (const { event } of router.execute(id, request, context)) {
      if (event.case === 'stdout' || event.case === 'stderr') told[event.case] += event.value;
      if (event.case === 'display') told.displays.push(displayOf(event.value));
      if (event.case === 'toolCall') {
        const given = await unlessAborted(answer(toolCallOf(event.value)), context.signal);
        const message = toolAnswerMessage(name, executionId, event.value.number, given);
        await router.ask(id, context, (client, settings) => client.answerToolCall(message, settings));
      }
      if (event.case === 'result') return { ...told, ...endOf(event.value) };
    }
    return { ...told, ...endOf(null) };
  } catch (error) {
    // Without an answer the cell's own limits end it.
    if (context.signal.aborted) await stopCell(router, id, executionId, context).catch(() => undefined);
    throw error;
  }
}

/** Resolves once the cell has stopped. */
async function stopCell(router: SandboxRouter, id: string, executionId: string, context: RoutedCall): Promise<void> {
  const name = sandboxName(id);
  const own = { ...context, signal: AbortSignal.timeout(CANCEL_MS) };
  const { stopped } = await router.ask(id, own, (client, settings) => client.cancelExecution({ name, executionId }, settings));
  if (stopped) await Array.fromAsync(router.execute(id, cellRequest(name, { executionId, code: '' }), own));
}

function endOf(result: ExecutionOutcome | null): Omit<WorkCellOutcome, 'stdout' | 'stderr' | 'displays'> {
  const { exit = 'infra', exitCode, signal, error, stateLost = true, scratchpad } = result ?? {};
  const raised = error && { type: error.type, message: error.message, line: error.line || null };
  return {
    exit: EXIT_REASONS.find((reason) => reason === exit) ?? 'infra',
    exitCode: exitCode ?? null,
    signal: signal ?? null,
    stateLost,
    ...(raised ? { error: raised } : {}),
    ...(scratchpad ? { scratchpad: scratchpadOf(scratchpad) } : {}),
  };
}

/** The first `bytesMax` bytes of a file. */
export async function readFile(router: SandboxRouter, id: string, path: string, bytesMax: number, context: RoutedCall): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let offset = 0n;
  const open = (client: ControllerClient, settings: CallSettings) => client.downloadFile({ name: sandboxName(id), path, offset }, settings);
  for await (const { chunk } of router.follow(id, context, open)) {
    chunks.push(chunk);
    offset += BigInt(chunk.byteLength);
    if (offset >= bytesMax) break;
  }
  return Buffer.concat(chunks).subarray(0, bytesMax);
}
