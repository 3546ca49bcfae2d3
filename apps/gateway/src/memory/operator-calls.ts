import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ErasureReceiptSchema, Memory as MemoryService, ReembeddingSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { ErasureReceipt, Reembedding } from '@etude/contracts/memory-upkeep';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { timestampOf } from '../wire/time.js';
import { parseField } from '../wire/validation.js';
import type { MemoryDeps } from './record-calls.js';

const Model = z.string().trim().min(1, 'must name an embedder: "sentence", "lexical", or a model of the embeddings server').max(200);
const Dimension = z.number().int().min(0).max(65_536);

/** What concerns the memory of all tenants, hence for operators only. */
export const operatorCalls = {
  async startReembedding(request, _call, deps) {
    const model = parseField(Model, request.model, 'model');
    const dimension = parseField(Dimension, request.dimension, 'dimension');
    const started = await deps.upkeep.startReembedding({
      model,
      ...(dimension > 0 ? { dimension } : {}),
      ...(request.dropModel === '' ? {} : { dropModel: request.dropModel }),
    });
    return reembeddingMessage(started);
  },

  async stopReembedding(_request, _call, deps) {
    return reembeddingMessage(await deps.upkeep.stopReembedding());
  },

  async getReembedding(_request, _call, deps) {
    return reembeddingMessage(await deps.upkeep.reembedding());
  },

  async reconcileMemory(_request, call, deps) {
    const { checked, repaired, problems } = await deps.upkeep.reconcile(call.signal);
    return { checked: counts(checked), repaired: [...repaired], problems: [...problems] };
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

export function erasureMessage(receipt: ErasureReceipt): MessageInitShape<typeof ErasureReceiptSchema> {
  const { id, state, removed, left, notes, error, requestedAt, finishedAt, agentDigest, userDigest } = receipt;
  return {
    id,
    state,
    removed: counts(removed),
    left: counts(left),
    notes,
    error: error ?? '',
    requestTime: timestampOf(requestedAt),
    finishTime: timestampOf(finishedAt),
    agentDigest: agentDigest ?? '',
    userDigest: userDigest ?? '',
  };
}

export function reembeddingMessage({ model, state, done, total, error }: Reembedding): MessageInitShape<typeof ReembeddingSchema> {
  return { model, state, done: BigInt(done), total: BigInt(total ?? 0), error: error ?? '' };
}

export function counts(named: Readonly<Record<string, number>>): Record<string, bigint> {
  return Object.fromEntries(Object.entries(named).map(([name, count]) => [name, BigInt(count)]));
}
