import type { CellToolAnswer, CellToolCall } from '@etude/contracts/scratchpad';
import { errorCode, EtudeError, unlessAborted } from '@etude/contracts/errors';
import type { ExecutionOutcome } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { CreateSandboxRequestSchema, RenewSandboxRequestSchema, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import type { CallSettings } from '@etude/contracts/grpc-client';
import type { Display, SandboxSession } from '@etude/contracts/sandbox';
import { EXIT_REASONS, FILE_CHUNK_BYTES_MAX, RETRYABLE_EXITS, SESSION_TTL_MS_DEFAULT } from '@etude/contracts/sandbox';
import { toWire } from '@etude/contracts/wire/messages';
import type { WorkCell, WorkCellOutcome, WorkFile, WorkSandbox, WorkSandboxes, WorkSandboxRequest } from '@etude/domain/ports/sandboxes';
import { SandboxLost } from '@etude/domain/ports/sandboxes';
import type { ControllerClient } from './controllers.js';
import type { RoutedCall, SandboxRouter } from './sandbox-router.js';
import { cellRequest, displayOf, scratchpadOf, toolAnswerMessage, toolCallOf } from '@etude/contracts/sandbox-wire';

/** Lifetime of a sandbox after its last use. */
const TTL_MS = SESSION_TTL_MS_DEFAULT;
const FILES_MAX = 1_000;
const LABEL = 'opened-by';
type Opener = 'rollout' | 'code_interpreter';

export const isOpenedBy = ({ labels }: Pick<SandboxSession, 'labels'>, opener: Opener): boolean => labels[LABEL] === opener;

/** Whether a rollout works in this session. Callers of its tenant must not change what an agent sees, or end its sandbox. */
export const isOfRollout = (session: Pick<SandboxSession, 'labels'>): boolean => isOpenedBy(session, 'rollout');

/** Sandboxes of `etude.v1.Sandboxes`. Sandboxes of rollouts don't count towards the limit of the tenant's callers. */
export class RouterWorkSandboxes implements WorkSandboxes {
  constructor(
    private readonly router: SandboxRouter,
    private readonly opener: Opener = 'rollout',
  ) {}

  async open({ tenant, requestId, template, limits }: WorkSandboxRequest, signal: AbortSignal): Promise<WorkSandbox> {
    const call = { tenant, signal, deadlineMs: Infinity };
    const labels = { [LABEL]: this.opener };
    const uncounted: Readonly<Record<string, string>> = this.opener === 'rollout' ? { 'etude-uncounted': 'rollout' } : {};
    const request = toWire(CreateSandboxRequestSchema, { requestId, template: template ?? '', limits, ttlMs: TTL_MS, labels });
    const made = await this.router.create(call, (client, settings) =>
      client.createSandbox(request, { ...settings, metadata: { ...settings.metadata, ...uncounted } }),
    );
    if (made.state !== SandboxState.OPEN) throw new SandboxLost(made.stateReason || 'it was closed, or nobody used it for too long');
    return this.at(tenant, made.name);
  }

  /** @param isRenewed whether each use renews the sandbox's lifetime */
  at(tenant: string, name: string, isRenewed = true): WorkSandbox {
    return new RouterWorkSandbox(this.router, tenant, name, isRenewed);
  }
}

class RouterWorkSandbox implements WorkSandbox {
  readonly #id: string;
  #renewedAt = -Infinity;

  constructor(
    private readonly router: SandboxRouter,
    private readonly tenant: string,
    readonly name: string,
    private readonly isRenewed: boolean,
  ) {
    this.#id = name.slice('sandboxes/'.length);
  }

  async run(cell: WorkCell, answer: (call: CellToolCall) => Promise<CellToolAnswer>, signal: AbortSignal): Promise<WorkCellOutcome> {
    return this.#using(signal, async (call) => {
      // A cell may run longer than the sandbox's lifetime, for example while it waits for tools. If a renewal fails, the cell reports why.
      const renewal = setInterval(() => void this.#renew(call).catch(() => undefined), TTL_MS / 4);
      try {
        const outcome = await this.#cell(cell, call, answer);
        if (isLoss(outcome)) throw new SandboxLost(outcome.error?.message ?? outcome.exit);
        return outcome;
      } finally {
        clearInterval(renewal);
      }
    });
  }

  async list(signal: AbortSignal): Promise<readonly WorkFile[]> {
    const { files } = await this.#ask(signal, (client, settings) =>
      client.listSandboxFiles({ name: this.name, pageSize: FILES_MAX }, settings),
    );
    return files.map(({ path, sizeBytes, modifyTime }) => ({
      path,
      sizeBytes: Number(sizeBytes),
      modifiedAt: modifyTime === undefined ? 0 : Number(modifyTime.seconds) * 1_000 + Math.floor(modifyTime.nanos / 1e6),
    }));
  }

  async read(path: string, bytesMax: number, signal: AbortSignal): Promise<Uint8Array | null> {
    const { name } = this;
    const chunks: Uint8Array[] = [];
    let offset = 0n;
    const open = (client: ControllerClient, settings: CallSettings) => client.downloadFile({ name, path, offset }, settings);
    return this.#using(signal, async (call) => {
      try {
        for await (const { chunk } of this.router.follow(this.#id, call, open)) {
          chunks.push(chunk);
          offset += BigInt(chunk.byteLength);
          if (offset >= bytesMax) break;
        }
        return Buffer.concat(chunks).subarray(0, bytesMax);
      } catch (error) {
        if (isNoFile(error)) return null;
        throw error;
      }
    });
  }

  async write(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    const { name } = this;
    await this.#ask(signal, async (client, settings) => {
      const { uploadedBytes } = await client.getSandboxFile({ name, path }, settings).catch(() => ({ uploadedBytes: 0n }));
      // Deletes what an interrupted upload has left.
      if (uploadedBytes > 0n) await client.deleteSandboxFile({ name, path }, settings);
      await client.uploadFile(uploadOf(name, path, content), settings);
    });
  }

  async search(text: string, limit: number, signal: AbortSignal) {
    const { lines, total } = await this.#ask(signal, (client, settings) =>
      client.searchSandboxFiles({ name: this.name, text, limit }, settings),
    );
    return { lines: lines.map(({ path, line, text: found }) => ({ path, line, text: found })), total };
  }

  async close(signal: AbortSignal): Promise<void> {
    const call = { tenant: this.tenant, signal, deadlineMs: Infinity };
    await this.router
      .ask(this.#id, call, (client, settings) => client.closeSandbox({ name: this.name }, settings))
      .catch((error: unknown) => {
        if (!hasEnded(error)) throw error;
      });
  }

  /** Runs one cell to its end, or follows it from its beginning. When `answer` throws, the cell is left running. */
  async #cell(cell: WorkCell, call: RoutedCall, answer: (asked: CellToolCall) => Promise<CellToolAnswer>): Promise<WorkCellOutcome> {
    const { router, name } = this;
    const { executionId } = cell;
    const told = { stdout: '', stderr: '', displays: [] as Display[] };
    try {
      for await (const { event } of router.execute(this.#id, cellRequest(name, cell), call)) {
        if (event.case === 'stdout' || event.case === 'stderr') told[event.case] += event.value;
        if (event.case === 'display') told.displays.push(displayOf(event.value));
        if (event.case === 'toolCall') {
          const given = await unlessAborted(answer(toolCallOf(event.value)), call.signal);
          const message = toolAnswerMessage(name, executionId, event.value.number, given);
          await router.ask(this.#id, call, (client, settings) => client.answerToolCall(message, settings));
        }
        if (event.case === 'result') return { ...told, ...endOf(event.value) };
      }
      return { ...told, ...endOf(null) };
    } catch (error) {
      // If the cancel fails, the cell's own limits end the cell.
      if (call.signal.aborted) await this.#stop(executionId, call).catch(() => undefined);
      throw error;
    }
  }

  /** Resolves once the cell has stopped. */
  async #stop(executionId: string, call: RoutedCall): Promise<void> {
    const { router, name } = this;
    const own = { ...call, signal: AbortSignal.timeout(CANCEL_MS) };
    const { stopped } = await router.ask(this.#id, own, (client, settings) => client.cancelExecution({ name, executionId }, settings));
    if (stopped) await Array.fromAsync(router.execute(this.#id, cellRequest(name, { executionId, code: '' }), own));
  }

  #ask<T>(signal: AbortSignal, work: (client: ControllerClient, settings: CallSettings) => Promise<T>): Promise<T> {
    return this.#using(signal, (call) => this.router.ask(this.#id, call, work));
  }

  /** Renews the sandbox before the work, if needed. @throws SandboxLost */
  async #using<T>(signal: AbortSignal, work: (call: RoutedCall) => Promise<T>): Promise<T> {
    const call = { tenant: this.tenant, signal, deadlineMs: Infinity };
    try {
      if (performance.now() - this.#renewedAt > TTL_MS / 2) await this.#renew(call);
      return await work(call);
    } catch (error) {
      throw hasEnded(error) ? new SandboxLost((error as Error).message) : error;
    }
  }

  async #renew(call: RoutedCall): Promise<void> {
    if (!this.isRenewed) return;
    const at = performance.now();
    const request = toWire(RenewSandboxRequestSchema, { name: this.name, ttlMs: TTL_MS });
    await this.router.ask(this.#id, call, (client, settings) => client.renewSandbox(request, settings));
    this.#renewedAt = at;
  }
}

async function* uploadOf(name: string, path: string, content: Uint8Array) {
  yield { part: { case: 'header' as const, value: { name, path, sizeBytes: BigInt(content.byteLength) } } };
  for (let at = 0; at < content.byteLength; at += FILE_CHUNK_BYTES_MAX)
    yield { part: { case: 'chunk' as const, value: content.subarray(at, at + FILE_CHUNK_BYTES_MAX) } };
}

const metadataOf = (error: unknown) => (error instanceof EtudeError ? (error.details.metadata ?? {}) : {});

const isNoFile = (error: unknown) => errorCode(error) === 'NOT_FOUND' && metadataOf(error)['reason'] === 'not_found';

/** Whether the error says that the sandbox has ended or is no longer kept. */
const hasEnded = (error: unknown) =>
  (errorCode(error) === 'FAILED_PRECONDITION' && metadataOf(error)['state'] !== undefined) ||
  (errorCode(error) === 'NOT_FOUND' && metadataOf(error)['name'] !== undefined);

const isLoss = ({ exit, error }: WorkCellOutcome) =>
  error?.type === 'SandboxLost' && (RETRYABLE_EXITS.has(exit) || exit === 'kernel_lost' || exit === 'oomkilled');

/** How long a stopped call waits until its cell is stopped. */
const CANCEL_MS = 5_000;

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
