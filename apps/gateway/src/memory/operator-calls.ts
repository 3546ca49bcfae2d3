import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  ErasureReceiptSchema,
  type Memory as MemoryService,
  ReconcileMemoryResponseSchema,
  ReembeddingSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { ErasureReceipt, Reembedding } from '@etude/contracts/memory-upkeep';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { toWire } from '../wire/messages.js';
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
    return toWire(ReconcileMemoryResponseSchema, await deps.upkeep.reconcile(call.signal));
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

export const erasureMessage = (receipt: ErasureReceipt): MessageInitShape<typeof ErasureReceiptSchema> =>
  toWire(ErasureReceiptSchema, receipt);

const reembeddingMessage = (move: Reembedding): MessageInitShape<typeof ReembeddingSchema> => toWire(ReembeddingSchema, move);
