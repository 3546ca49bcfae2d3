import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Memory, MemoryHitSchema, SearchMemoryRequest } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope, SearchQuery } from '@etude/domain/ports/memory';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { optionalAgent } from '../wire/resource-name.js';
import { boundedCount, parseField } from '../wire/validation.js';
import { MemoryAccess, type OpenMemory } from './memory-access.js';
import { hitMessage, skillHitMessage } from './memory-hit.mapping.js';

const LIMIT = { max: 100, standard: 5 };
const Query = z.string().trim().min(1, 'must not be empty').max(100_000, 'must not be longer than 100000 characters');
const Layers = z.array(z.enum(MemoryLayer.options, { error: `must be one of ${MemoryLayer.options.join(', ')}` }));

type Hits = Array<MessageInitShape<typeof MemoryHitSchema>>;

const SEARCHES: Readonly<Record<MemoryLayer, (memory: OpenMemory, scope: ReadScope, query: SearchQuery) => Promise<Hits>>> = {
  episodic: async ({ episodic }, scope, query) => (await episodic.search(scope, query)).map(hitMessage),
  semantic: async ({ semantic }, scope, query) => (await semantic.search(scope, query)).map(hitMessage),
  procedural: async ({ procedural }, scope, query) => (await procedural.search(scope, query)).map(skillHitMessage),
};

/** `etude.v1.Memory`. Hits come layer by layer, best first within each: scores of two layers don't compare. */
@Controller()
export class MemoryController implements Pick<GrpcController<typeof Memory>, 'searchMemory'> {
  constructor(private readonly memory: MemoryAccess) {}

  @GrpcMethod('Memory')
  async searchMemory(request: SearchMemoryRequest, _metadata: Metadata, call: ServerCall) {
    const text = parseField(Query, request.query, 'query');
    const layers = new Set(parseField(Layers, request.layers, 'layers'));
    const limit = boundedCount(request.limit, 'limit', LIMIT);
    const scope = { tenant: contextOf(call).tenant, agent: optionalAgent(request.agent) };
    const asked = layers.size > 0 ? [...layers] : MemoryLayer.options;
    const memory = await this.memory.open();
    const hits = await Promise.all(asked.map((layer) => SEARCHES[layer](memory, scope, { text, limit, explain: request.explain })));
    return { hits: hits.flat() };
  }
}
