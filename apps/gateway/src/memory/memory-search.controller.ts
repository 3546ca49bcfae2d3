import type { MessageInitShape } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import type {
  GetMemoryRequest,
  Memory as MemoryService,
  MemoryHitSchema,
  RecallRequest,
  SearchMemoryRequest,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import { readableSkills } from '@etude/memory/layers/memory-recall';
import type { LayerQuery, Memory } from '@etude/memory/memory';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { contextOf } from '../calls/call-context.js';
import { askedSkills } from '../skills/skill-access.js';
import { parseField } from '../wire/validation.js';
import { MemoryAccess } from './memory-access.js';
import { hitMessage, skillHitMessage } from './memory-hit.mapping.js';
import { recordMessage, shownRecord } from './memory-record.mapping.js';
import { readScope } from './memory-scope.js';
import { checkedRecall, checkedSearch } from './search-request.js';
import { skillAsRecord } from './skill-as-record.js';

type Methods = 'searchMemory' | 'recall' | 'getMemory' | 'getMemoryStats';
type Hits = Array<MessageInitShape<typeof MemoryHitSchema>>;
type Search = (memory: Memory, scope: ReadScope, query: LayerQuery) => Promise<Hits>;

/** What the database being away looks like; anything else is an error also where a partial answer is enough. */
const AWAY: ReadonlySet<string> = new Set(['MEMORY_UNAVAILABLE', 'MODEL_UNAVAILABLE', 'MODEL_RATE_LIMITED']);

const SEARCHES: Readonly<Record<MemoryLayer, Search>> = {
  episodic: async ({ episodic }, scope, query) => (await episodic.search(scope, query)).map(hitMessage),
  semantic: async ({ semantic }, scope, query) => {
    const hits = await semantic.search(scope, query);
    const facts = hits.filter(({ kind }) => kind === 'fact').map(({ id }) => id);
    if (facts.length > 0) await semantic.countAccess(scope, facts);
    return hits.map(hitMessage);
  },
  procedural: async ({ procedural }, scope, query) => (await readableSkills(procedural, scope, query)).map(skillHitMessage),
};

/** The reading half of `etude.v1.Memory`. Hits come layer by layer, best first within each: scores of two layers don't compare. */
@Controller()
export class MemorySearchController implements Pick<GrpcController<typeof MemoryService>, Methods> {
  constructor(private readonly access: MemoryAccess) {}

  @GrpcMethod('Memory')
  async searchMemory(request: SearchMemoryRequest, _metadata: Metadata, call: ServerCall) {
    const { layers, queryOf } = checkedSearch(request);
    const scope = readScope(call, request);
    const memory = await this.access.open();
    const found = await Promise.all(
      layers.map((layer) => orMissing(layer, request.partial, () => SEARCHES[layer](memory, scope, queryOf(layer)))),
    );
    return {
      hits: found.flatMap((hits) => (Array.isArray(hits) ? hits : [])),
      missingLayers: found.filter((hits) => typeof hits === 'string'),
    };
  }

  @GrpcMethod('Memory')
  async recall(request: RecallRequest, _metadata: Metadata, call: ServerCall) {
    const checked = checkedRecall(request);
    const memory = await this.access.open();
    const { facts, experiences, procedures, tokens, missing } = await memory.recall(readScope(call, request), checked, {
      partial: request.partial,
    });
    return {
      facts: facts.map(hitMessage),
      experiences: experiences.map(hitMessage),
      procedures: procedures.map(hitMessage),
      tokens,
      missingLayers: [...missing],
    };
  }

  @GrpcMethod('Memory')
  async getMemory(request: GetMemoryRequest, _metadata: Metadata, call: ServerCall) {
    const { id } = request;
    const layer = parseField(MemoryLayer, request.layer, 'layer');
    const memory = await this.access.open();
    const record =
      layer === 'procedural'
        ? await skillAsRecord(memory.procedural, askedSkills(call, request), id)
        : await memory.get(readScope(call, request), layer, id);
    if (record === null) throw new EtudeError('NOT_FOUND', `There is nothing called ${JSON.stringify(id)} in ${layer} memory.`);
    return recordMessage(shownRecord(record, contextOf(call).roles));
  }

  @GrpcMethod('Memory')
  async getMemoryStats(_request: object, _metadata: Metadata, call: ServerCall) {
    const memory = await this.access.open();
    const { tenant, roles } = contextOf(call);
    const { adapter, model, layers, diskBytes, memoryBytes } = await memory.upkeep.stats(tenant);
    // What they tell is of all tenants together.
    const isOperator = roles.includes('operator');
    return {
      adapter,
      embeddingModel: model.name,
      dimension: model.dimension,
      layers: layers.map((one) => ({ ...one, records: BigInt(one.records), archived: BigInt(one.archived) })),
      diskBytes: BigInt(isOperator ? (diskBytes ?? 0) : 0),
      memoryBytes: BigInt(isOperator ? (memoryBytes ?? 0) : 0),
    };
  }
}

async function orMissing(layer: MemoryLayer, partial: boolean, search: () => Promise<Hits>): Promise<Hits | string> {
  try {
    return await search();
  } catch (error) {
    if (partial && AWAY.has((error as { code?: string }).code ?? '')) return layer;
    throw error;
  }
}
