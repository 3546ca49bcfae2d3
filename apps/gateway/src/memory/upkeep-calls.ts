import { hash } from 'node:crypto';
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
import { batchesOf } from '@etude/contracts/wire/batches';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { canonicalJson, skillDigest } from '@etude/domain/skills/content-digest';
import { GONE } from '@etude/domain/skills/life/skill-life';
import { pinnedTo } from '@etude/domain/skills/proof/bundle-code';
import type { ProposeSkill } from '@etude/memory/upkeep/imported-record';
import type { Handlers } from '../calls/calls.js';
import { askedSkills, ownersOf, requireAuthor, seesUsers } from '../readers/readers.js';
import { optionalRequestId } from '../wire/names.js';
import type { MemoryDeps } from './record-calls.js';
import { secretReasons } from '../calls/told-secrets.js';
import type { CallContext } from '../calls/caller.js';
import type { SkillDeps } from '../registration/skill-registration.js';

const IDS_MAX = 1_000;
/** The size of one message of an export, in lines and characters. */
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
      throw invalidField('lines', `must not have more than ${REQUEST_LINES_MAX} entries, but has ${lines.length}; send fewer at once`);
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
    if (request.ids.length > IDS_MAX) throw invalidField('ids', `must have at most ${IDS_MAX} entries, but has ${request.ids.length}`);
    const { upkeep } = await deps.memory.open();
    const restored = await upkeep.restore(ownersOf(call, request), request.ids.length > 0 ? request.ids : undefined);
    return { restored: BigInt(restored) };
  },

  async eraseMemory(request, call, deps) {
    const { tenant } = call;
    const subject = erasureSubject(request, tenant);
    const requestId = optionalRequestId(request.requestId) ?? '';
    const receipt = await deps.upkeep.requestErasure({ tenant, requestId, asked: subject }, subject);
    return toWire(ErasureReceiptSchema, receipt);
  },

  async getErasure({ id }, call, deps) {
    const { receipt } = (await deps.upkeep.loadErasure(call.tenant, id)) ?? {};
    const isSeen = call.user === undefined || receipt?.userDigest === hash('sha256', call.user);
    if (receipt === undefined || !isSeen) throw new EtudeError('NOT_FOUND', `There is no erasure ${JSON.stringify(id)}. Check the id.`);
    return toWire(ErasureReceiptSchema, receipt);
  },

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

function erasureSubject({ whose }: EraseMemoryRequest, tenant: string): ErasureSubject {
  if (whose.case === 'agent') return { agent: parseField(AgentId, whose.value, 'agent') };
  if (whose.case === 'user') return { user: parseField(UserId, whose.value, 'user') };
  if (whose.case === 'tenant' && whose.value === tenant) return { all: true };
  throw whose.case === 'tenant'
    ? invalidField('tenant', 'must be the tenant of your key, to confirm that all memory of this tenant is to be erased')
    : invalidField('agent', 'name an agent, a user, or the tenant whose memory is to be erased');
}

interface ProposalDeps extends Pick<SkillDeps, 'registration' | 'templateFor'> {
  readonly procedural: ProceduralMemory;
}

/**
 * Stores the skills of an import like any registration, then has them verified.
 *
 * @throws EtudeError from the returned function: as `SkillRegistration.store`; PERMISSION_DENIED for shared skills without the role;
 *   FAILED_PRECONDITION for packages that no sandbox has, or calls of skills that aren't active here
 */
function proposedSkills(call: CallContext, { procedural, registration, templateFor }: ProposalDeps): ProposeSkill {
  const { tenant, name: by } = call;
  return async ({ skill, setAside }) => {
    requireAuthor(call, skill);
    const known = await procedural.versions(skill.scope, skill.name);
    const there = thereAlready(skill, known, setAside !== null);
    if (there !== undefined) {
      // The earlier import may have stopped before it added the job.
      await registration.requestVerification(there);
      return 'unchanged';
    }
    // Keeps the original time, so that an erasure that is newer than the skill still applies to it.
    const made = { by, at: skill.createdAt, ...(setAside === null ? {} : { setAside }) };
    if (setAside === null) templateFor(skill.packages ?? []);
    const candidate = setAside === null ? await pinnedHere(skill, procedural) : skill;
    const { version } = await registration.store(procedural, candidate, tenant, made);
    return known.some((one) => one.version === version) ? 'unchanged' : 'added';
  };
}

/** The stored version with the same content. Archived and rejected versions count only if the import archives the skill. */
function thereAlready(skill: Skill, known: readonly Skill[], isSetAside: boolean): Skill | undefined {
  const content = withoutPins(skill);
  return known.find((version) => (isSetAside || !GONE.has(version.status)) && withoutPins(version) === content);
}

/** The content for a comparison, without the pinned versions of dependencies, which differ between installations. */
function withoutPins({ dependencies = [], ...content }: Skill): string {
  return canonicalJson([skillDigest(content), dependencies.map(({ name }) => name).toSorted()]);
}

/**
 * Pins called skills to their active versions here, by name. Called skills of the same import become active only by approval. Their caller
 * is refused until then, and must be imported again.
 *
 * @throws EtudeError FAILED_PRECONDITION
 */
function pinnedHere({ dependencies = [], ...unpinned }: Skill, procedural: ProceduralMemory): Promise<Skill> {
  const names = dependencies.map(({ name }) => name);
  return pinnedTo(names, unpinned, procedural);
}
