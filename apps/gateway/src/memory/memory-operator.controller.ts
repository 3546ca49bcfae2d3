import type { Memory as MemoryService, StartReembeddingRequest } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { NeedsRole } from '../calls/call.guard.js';
import { parseField } from '../wire/validation.js';
import { counts, reembeddingMessage } from './upkeep.mapping.js';

type Methods = 'startReembedding' | 'stopReembedding' | 'getReembedding' | 'reconcileMemory';

const Model = z.string().trim().min(1, 'must name an embedder: "sentence", "lexical", or a model of the embeddings server').max(200);
const Dimension = z.number().int().min(0).max(65_536);

/** What concerns the memory of all tenants, hence for operators only. */
@Controller()
@NeedsRole('operator')
export class MemoryOperatorController implements Pick<GrpcController<typeof MemoryService>, Methods> {
  constructor(private readonly upkeep: UpkeepStore) {}

  @GrpcMethod('Memory')
  async startReembedding(request: StartReembeddingRequest, _metadata: Metadata, _call: ServerCall) {
    const model = parseField(Model, request.model, 'model');
    const dimension = parseField(Dimension, request.dimension, 'dimension');
    const started = await this.upkeep.startReembedding({
      model,
      ...(dimension > 0 ? { dimension } : {}),
      ...(request.dropModel === '' ? {} : { dropModel: request.dropModel }),
    });
    return reembeddingMessage(started);
  }

  @GrpcMethod('Memory')
  async stopReembedding(_request: object, _metadata: Metadata, _call: ServerCall) {
    return reembeddingMessage(await this.upkeep.stopReembedding());
  }

  @GrpcMethod('Memory')
  async getReembedding(_request: object, _metadata: Metadata, _call: ServerCall) {
    return reembeddingMessage(await this.upkeep.reembedding());
  }

  @GrpcMethod('Memory')
  async reconcileMemory(_request: object, _metadata: Metadata, call: ServerCall) {
    const { checked, repaired, problems } = await this.upkeep.reconcile(contextOf(call).signal);
    return { checked: counts(checked), repaired: [...repaired], problems: [...problems] };
  }
}
