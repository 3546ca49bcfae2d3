import { EtudeError } from '@etude/contracts/errors';
import type {
  ArchiveMemoryRequest,
  EraseMemoryRequest,
  ExportMemoryRequest,
  GetErasureRequest,
  ImportMemoryRequest,
  Memory as MemoryService,
  RestoreMemoryRequest,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { AgentId, UserId } from '@etude/contracts/ids';
import { MemoryLayer } from '@etude/contracts/task';
import { REQUEST_LINES_MAX, REQUEST_UNPACKED_BYTES_MAX } from '@etude/memory/upkeep/import-lines';
import { hasRole } from '@etude/platform/auth';
import { type ErasureSubject, UpkeepStore } from '@etude/queue/memory/upkeep-store';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { pacedStream } from '../calls/paced-stream.js';
import { optionalRequestId } from '../wire/resource-name.js';
import { invalidField, parseField } from '../wire/validation.js';
import { inMessages } from './export-lines.js';
import { MemoryAccess } from './memory-access.js';
import { ownersOf } from './memory-scope.js';
import { askedSkills, seesUsers } from '../skills/skill-access.js';
import { SkillServices } from '../skills/skill-services.js';
import { proposedSkills } from './proposed-skills.js';
import { erasureMessage } from './upkeep.mapping.js';

type Methods = 'exportMemory' | 'importMemory' | 'archiveMemory' | 'restoreMemory' | 'eraseMemory' | 'getErasure';

const SCORE_MAX = 0.2;
const OLDER_THAN_DAYS = 30;
const IDS_MAX = 1_000;

const Fraction = z.number().min(0).max(1);
const Days = z.number().int().min(0).max(36_500);
const Layers = z.array(z.enum(MemoryLayer.options, { error: `must be one of ${MemoryLayer.options.join(', ')}` }));

/** What a tenant does with its memory as a whole: `etude.v1.Memory`. */
@Controller()
export class MemoryUpkeepController implements Pick<GrpcController<typeof MemoryService>, Methods> {
  constructor(
    private readonly access: MemoryAccess,
    private readonly upkeep: UpkeepStore,
    private readonly skills: SkillServices,
  ) {}

  @GrpcMethod('Memory')
  async exportMemory(request: ExportMemoryRequest, _metadata: Metadata, call: ServerCall) {
    const owners = ownersOf(call, request);
    const layers = parseField(Layers, request.layers, 'layers');
    const { signal, roles } = contextOf(call);
    const { upkeep } = await this.access.open();
    const options = { ...(layers.length > 0 ? { layers } : {}), hiddenTests: hasRole(roles, 'reviewer'), signal };
    return pacedStream(call, inMessages(upkeep.exportLines(owners, options)), signal);
  }

  @GrpcMethod('Memory')
  async importMemory({ lines }: ImportMemoryRequest, _metadata: Metadata, call: ServerCall) {
    if (lines.length > REQUEST_LINES_MAX) {
      throw invalidField('lines', `must not have more than ${REQUEST_LINES_MAX} entries; it has ${lines.length}, send fewer at once`);
    }
    const { tenant, signal, roles } = contextOf(call);
    const { upkeep, procedural } = await this.access.open();
    const trust = roles.includes('operator') ? {} : { proposeSkill: proposedSkills(call, { procedural, ...this.skills.parts }) };
    const report = await upkeep.importLines(tenant, each(lines), { signal, unpackedBytesMax: REQUEST_UNPACKED_BYTES_MAX, ...trust });
    return {
      lines: BigInt(report.lines),
      added: BigInt(report.added),
      unchanged: BigInt(report.unchanged),
      refused: report.refused.map(({ line, reason }) => ({ line: BigInt(line), reason })),
    };
  }

  @GrpcMethod('Memory')
  async archiveMemory(request: ArchiveMemoryRequest, _metadata: Metadata, call: ServerCall) {
    const owners = ownersOf(call, request);
    const layers = parseField(Layers, request.layers, 'layers');
    const policy = {
      scoreMax: parseField(Fraction.default(SCORE_MAX), request.scoreMax, 'score_max'),
      olderThanDays: parseField(Days.default(OLDER_THAN_DAYS), request.olderThanDays, 'older_than_days'),
      ...(layers.length > 0 ? { layers } : {}),
    };
    const { upkeep } = await this.access.open();
    const { looked, archived, examples } = await upkeep.archive(owners, policy, { dryRun: request.dryRun }, contextOf(call).signal);
    const asked = askedSkills(call, request);
    const named = examples.filter((example) => example.layer !== 'procedural' || seesUsers(asked, example));
    return {
      looked: BigInt(looked),
      archived: BigInt(archived),
      examples: named.map(({ id, layer, title, score }) => ({ id, layer, title, score })),
    };
  }

  @GrpcMethod('Memory')
  async restoreMemory(request: RestoreMemoryRequest, _metadata: Metadata, call: ServerCall) {
    if (request.ids.length > IDS_MAX) throw invalidField('ids', `must not have more than ${IDS_MAX} entries; it has ${request.ids.length}`);
    const { upkeep } = await this.access.open();
    const restored = await upkeep.restore(ownersOf(call, request), request.ids.length > 0 ? request.ids : undefined);
    return { restored: BigInt(restored) };
  }

  @GrpcMethod('Memory')
  async eraseMemory(request: EraseMemoryRequest, _metadata: Metadata, call: ServerCall) {
    const { tenant } = contextOf(call);
    const subject = erasureSubject(request, tenant);
    const { receipt } = await this.upkeep.requestErasure(tenant, optionalRequestId(request.requestId) ?? '', subject);
    return erasureMessage(receipt);
  }

  @GrpcMethod('Memory')
  async getErasure({ id }: GetErasureRequest, _metadata: Metadata, call: ServerCall) {
    const receipt = await this.upkeep.erasure(contextOf(call).tenant, id);
    if (receipt === null) throw new EtudeError('NOT_FOUND', `There is no erasure ${JSON.stringify(id)}.`);
    return erasureMessage(receipt);
  }
}

function erasureSubject({ whose }: EraseMemoryRequest, tenant: string): ErasureSubject {
  if (whose.case === 'agent') return { agent: parseField(AgentId, whose.value, 'agent') };
  if (whose.case === 'user') return { user: parseField(UserId, whose.value, 'user') };
  if (whose.case === 'tenant' && whose.value === tenant) return { all: true };
  throw whose.case === 'tenant'
    ? invalidField('tenant', 'must be the tenant of this key, to confirm that all of it is to be erased')
    : invalidField('agent', 'name an agent, a user, or the tenant whose memory is to be erased');
}

async function* each(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}
