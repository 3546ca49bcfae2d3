import { Readable } from 'node:stream';
import { EtudeError } from '@etude/contracts/errors';
import {
  ArchiveMemoryRequestSchema,
  ArchiveMemoryResponseSchema,
  type EraseMemoryRequest,
  ErasureReceiptSchema,
  ImportMemoryResponseSchema,
  type Memory as MemoryService,
  ReconcileMemoryResponseSchema,
  ReembeddingSchema,
  StartReembeddingRequestSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { AgentId, UserId } from '@etude/contracts/ids';
import { MemoryLayer } from '@etude/contracts/task';
import { REQUEST_LINES_MAX } from '@etude/memory/upkeep/import-lines';
import { hasRole } from '@etude/platform/auth';
import type { ErasureSubject } from '@etude/queue/redis/keys';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import { askedSkills, ownersOf, seesUsers } from '../readers/readers.js';
import { batchesOf } from '@etude/contracts/wire/batches';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { optionalRequestId } from '../wire/names.js';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import { proposedSkills } from './proposed-skills.js';
import type { MemoryDeps } from './record-calls.js';
import { secretReasons } from './told-secrets.js';

const IDS_MAX = 1_000;
/** What one message of an export carries, in lines and characters. */
const MESSAGE = { itemsMax: 500, sizeMax: 1_000_000 };
const Layers = z.array(MemoryLayer);
const Archiving = z.object({
  scoreMax: z.number().min(0).max(1).default(0.2),
  olderThanDays: z.number().int().min(0).max(36_500).default(30),
  layers: Layers,
});
const Move = z.object({
  model: z.string().trim().min(1, 'must name an embedder: "sentence", "lexical", or a model of the embeddings server').max(200),
  dimension: z.number().int().min(1).max(65_536).optional(),
  dropModel: z.string().optional(),
});

export const upkeepCalls = {
  async *exportMemory(request, call, deps) {
    const owners = ownersOf(call, request);
    const layers = parseField(Layers, request.layers, 'layers');
    const { signal, roles } = call;
    const { upkeep } = await deps.memory.open();
    const options = { ...(layers.length > 0 ? { layers } : {}), hiddenTests: hasRole(roles, 'reviewer'), signal };
    for await (const lines of batchesOf(upkeep.exportLines(owners, options), MESSAGE, ({ length }) => length)) yield { lines };
  },

  async importMemory({ lines }, call, deps) {
    if (lines.length > REQUEST_LINES_MAX) {
      throw invalidField('lines', `must not have more than ${REQUEST_LINES_MAX} entries; it has ${lines.length}, send fewer at once`);
    }
    const { tenant, signal, roles } = call;
    const { upkeep, procedural } = await deps.memory.open();
    const trust = roles.includes('operator') ? {} : { proposeSkill: proposedSkills(call, { procedural, ...deps }) };
    const options = { signal, reasonAgainst: await secretReasons(), ...trust };
    const report = await upkeep.importLines(tenant, Readable.from(lines) as AsyncIterable<string>, options);
    return toWire(ImportMemoryResponseSchema, report);
  },

  async archiveMemory(request, call, deps) {
    const owners = ownersOf(call, request);
    const { layers, ...bounds } = fromWire(Archiving, ArchiveMemoryRequestSchema, request);
    const policy = layers.length > 0 ? { ...bounds, layers } : bounds;
    const { upkeep } = await deps.memory.open();
    const report = await upkeep.archive(owners, policy, { dryRun: request.dryRun }, call.signal);
    const asked = askedSkills(call, request);
    const examples = report.examples.filter((example) => example.layer !== 'procedural' || seesUsers(asked, example));
    return toWire(ArchiveMemoryResponseSchema, { ...report, examples });
  },

  async restoreMemory(request, call, deps) {
    if (request.ids.length > IDS_MAX) throw invalidField('ids', `must not have more than ${IDS_MAX} entries; it has ${request.ids.length}`);
    const { upkeep } = await deps.memory.open();
    const restored = await upkeep.restore(ownersOf(call, request), request.ids.length > 0 ? request.ids : undefined);
    return { restored: BigInt(restored) };
  },

  async eraseMemory(request, call, deps) {
    const { tenant } = call;
    const subject = erasureSubject(request, tenant);
    const { receipt } = await deps.upkeep.requestErasure(tenant, optionalRequestId(request.requestId) ?? '', subject);
    return toWire(ErasureReceiptSchema, receipt);
  },

  async getErasure({ id }, call, deps) {
    const receipt = await deps.upkeep.erasure(call.tenant, id);
    if (receipt === null) throw new EtudeError('NOT_FOUND', `There is no erasure ${JSON.stringify(id)}.`);
    return toWire(ErasureReceiptSchema, receipt);
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

function erasureSubject({ whose }: EraseMemoryRequest, tenant: string): ErasureSubject {
  if (whose.case === 'agent') return { agent: parseField(AgentId, whose.value, 'agent') };
  if (whose.case === 'user') return { user: parseField(UserId, whose.value, 'user') };
  if (whose.case === 'tenant' && whose.value === tenant) return { all: true };
  throw whose.case === 'tenant'
    ? invalidField('tenant', 'must be the tenant of this key, as a confirmation that all its memory is erased')
    : invalidField('agent', 'name an agent, a user, or the tenant whose memory is to be erased');
}

/** Work on the memory of all tenants, for operators only. */
export const operatorCalls = {
  async startReembedding(request, _call, deps) {
    const move = fromWire(Move, StartReembeddingRequestSchema, request);
    return toWire(ReembeddingSchema, await deps.upkeep.startReembedding(move));
  },

  async stopReembedding(_request, _call, deps) {
    return toWire(ReembeddingSchema, await deps.upkeep.stopReembedding());
  },

  async getReembedding(_request, _call, deps) {
    return toWire(ReembeddingSchema, await deps.upkeep.reembedding());
  },

  async reconcileMemory(_request, call, deps) {
    return toWire(ReconcileMemoryResponseSchema, await deps.upkeep.reconcile(call.signal));
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;
