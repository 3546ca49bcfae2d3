import type { MessageInitShape } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import {
  type GetMemoryRequest,
  LiftSchema,
  type Memory as MemoryService,
  MemoryHitSchema,
  MemoryStatsSchema,
  RecallRequestSchema,
  type SearchMemoryRequest,
  SearchMemoryRequestSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { MemoryLayer } from '@etude/contracts/task';
import { VisibleText } from '@etude/contracts/visible-text';
import type { MemoryHit, ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { provenanceOf } from '@etude/domain/recall/recall';
import { RECALL_TOKENS } from '@etude/domain/recall/recollect';
import { readableSkills } from '@etude/memory/layers/memory-reads';
import type { LayerQuery, Memory, PlainRecord } from '@etude/memory/memory';
import { RECORD_KINDS } from '@etude/memory/record-store';
import { z } from 'zod';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { boundedCount, invalidField, parseField } from '@etude/contracts/wire/validation';
import { addSides, hasEnough, isHarmful, NO_SHOWS, successEffect, tokenEffect } from '@etude/domain/lift/effects';
import type { LayerShows } from '@etude/memory/layers/item-shows';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { askedSkills, type AskedSkills, readScope, seesUsers, skillNamed } from '../readers/readers.js';
import type { MemoryDeps } from './record-calls.js';
import { recordMessage, shownRecord } from './record-message.js';

const LIMIT = { max: 100, standard: 5 };
const TOKENS = { max: 100_000, standard: RECALL_TOKENS };
const IMPORTANCE_MIN = 0.3;
const SUCCESS_RATE_MIN = 0.6;
/** The most items for which one call returns the lift, which is the effect of showing an item. */
const LIFT_ITEMS_MAX = 1_000;

const Text = VisibleText.max(100_000);
export const SEARCHED = ['transition', 'episode', 'fact', 'summary', 'reflection', 'chunk', 'turn', 'skill'] as const;
const Fraction = z.number().min(0).max(1).optional();
const Asked = z.object({
  query: Text,
  layers: z.array(MemoryLayer),
  kinds: z.array(z.enum(SEARCHED)),
  similarityMin: Fraction,
  importanceMin: Fraction,
  successRateMin: Fraction,
  category: z.string().max(200),
});
const Count = z.number().int().min(0).max(100).optional();
const Recalled = z.object({ context: Text, facts: Count, experiences: Count, procedures: Count });

const isOf = (layer: MemoryLayer, kind: string) => (RECORD_KINDS[layer] as readonly string[]).includes(kind);

/** @throws EtudeError INVALID_ARGUMENT naming the field */
function checkedSearch(request: SearchMemoryRequest) {
  const asked = fromWire(Asked, SearchMemoryRequestSchema, request);
  const { query: text, kinds, similarityMin, category } = asked;
  const limit = boundedCount(request.limit, 'limit', LIMIT);
  const named = asked.layers.length > 0 ? [...new Set(asked.layers)] : MemoryLayer.options;
  const layers = kinds.length === 0 ? named : named.filter((layer) => kinds.some((kind) => isOf(layer, kind)));
  if (layers.length === 0) throw invalidField('kinds', `do not exist in ${named.join(', ')} memory; leave out layers, or name other kinds`);
  const only = layers.length === 1 ? layers[0] : null;
  const lowest: Readonly<Record<MemoryLayer, number | undefined>> = {
    episodic: asked.importanceMin ?? (only === 'episodic' ? IMPORTANCE_MIN : undefined),
    semantic: undefined,
    procedural: asked.successRateMin ?? (only === 'procedural' ? SUCCESS_RATE_MIN : undefined),
  };
  const { explain, archived, rerank } = request;
  const queryOf = (layer: MemoryLayer): LayerQuery => ({
    text,
    limit,
    ...(similarityMin === undefined ? { relevantOnly: true } : { similarityMin }),
    explain,
    archived,
    rerank,
    ...(kinds.length > 0 ? { kinds: kinds.filter((kind) => isOf(layer, kind)) } : {}),
    ...(lowest[layer] === undefined ? {} : { worthMin: lowest[layer] }),
    ...(category === '' ? {} : { category }),
  });
  return { layers, queryOf };
}

type Hits = Array<MessageInitShape<typeof MemoryHitSchema>>;
type Search = (memory: Memory, scope: ReadScope, query: LayerQuery) => Promise<Hits>;

/** Codes of an unreachable store or model. Other errors fail even a search that accepts partial results. */
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

/** The reading calls of `etude.v1.Memory`. Hits are sorted within each layer, because scores of different layers aren't comparable. */
export const searchCalls = {
  async searchMemory(request, call, deps) {
    const { layers, queryOf } = checkedSearch(request);
    const scope = readScope(call, request);
    const memory = await deps.memory.open();
    const found = await Promise.all(
      layers.map((layer) => orMissing(layer, request.partial, () => SEARCHES[layer](memory, scope, queryOf(layer)))),
    );
    return {
      hits: found.flatMap((hits) => (Array.isArray(hits) ? hits : [])),
      missingLayers: found.filter((hits) => typeof hits === 'string'),
    };
  },

  async recall(request, call, deps) {
    const tokensMax = boundedCount(request.tokensMax, 'tokens_max', TOKENS);
    const checked = { ...fromWire(Recalled, RecallRequestSchema, request), tokensMax };
    const memory = await deps.memory.open();
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
  },

  async getMemory(request, call, deps) {
    return recordMessage(shownRecord(await recordAsked(request, call, await deps.memory.open()), call.roles));
  },

  async getMemoryStats(_request, call, deps) {
    const memory = await deps.memory.open();
    const { tenant, roles } = call;
    const { model, diskBytes, ...stats } = await memory.upkeep.stats(tenant);
    // The size covers all tenants.
    const ofAll = roles.includes('operator') ? { diskBytes } : {};
    const { calls: modelCalls, callsToday: modelCallsToday, failure, promptTokens } = await deps.settling.spend(tenant);
    const unsettled = await memory.semantic.unsettled(tenant);
    const unreadConversations = await memory.conversations.unread(tenant);
    const settling = { unsettled, unreadConversations, modelCalls, modelCallsToday, promptTokens, failure: failure ?? '' };
    return toWire(MemoryStatsSchema, { ...stats, settling, embeddingModel: model.name, dimension: model.dimension, ...ofAll });
  },

  async getLift(request, call, deps) {
    const { layer, item } = request;
    const layers = layer === '' ? MemoryLayer.options : [parseField(MemoryLayer, layer, 'layer')];
    const asked = askedSkills(call, request);
    const memory = await deps.memory.open();
    const query = { layers, ...(item === '' ? {} : { item }) };
    const sums = new Map(layers.map((one) => [one, { shown: NO_SHOWS, withheld: NO_SHOWS }]));
    const items: LayerShows[] = [];
    for await (const shows of memory.shows.list(readScope(call, request), query)) {
      if (shows.layer === 'procedural' && !seesUsers(asked, shows)) continue;
      sums.set(shows.layer, added(sums.get(shows.layer)!, shows));
      if (item !== '' || hasEnough(shows)) items.push(shows);
    }
    return toWire(LiftSchema, {
      memory: liftOf([...sums.values()].reduce(added)),
      layers: [...sums].map(([name, sides]) => ({ layer: name, ...liftOf(sides) })),
      items: items.toSorted(byHarm).slice(0, LIFT_ITEMS_MAX).map(itemLift),
    });
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

/** The record that a request names. @throws EtudeError INVALID_ARGUMENT, NOT_FOUND, and as `skillAsRecord` */
export async function recordAsked(
  request: Pick<GetMemoryRequest, 'id' | 'layer' | 'agent' | 'user'>,
  call: CallContext,
  memory: Memory,
): Promise<PlainRecord> {
  const { id } = request;
  const layer = parseField(MemoryLayer, request.layer, 'layer');
  const record =
    layer === 'procedural'
      ? await skillAsRecord(memory.procedural, askedSkills(call, request), id)
      : await memory.get(readScope(call, request), layer, id);
  if (record !== null) return record;
  throw new EtudeError('NOT_FOUND', `There is no record ${JSON.stringify(id)} in ${layer} memory; list the records to see which exist.`);
}

async function orMissing(layer: MemoryLayer, partial: boolean, search: () => Promise<Hits>): Promise<Hits | string> {
  try {
    return await search();
  } catch (error) {
    if (partial && AWAY.has((error as { code?: string }).code ?? '')) return layer;
    throw error;
  }
}

const SKILL_ID = /^(?:skills\/)?([a-z][a-z0-9_]{0,79})(?:@([1-9][0-9]{0,8}))?$/;

/**
 * A skill by the id of a hit, or its newest version by name. Readers are checked as for `GetSkill`; null if no skill can have this id.
 *
 * @throws EtudeError NOT_FOUND; FAILED_PRECONDITION if a reviewer names no user, and several users have this skill
 */
async function skillAsRecord(procedural: ProceduralMemory, asked: AskedSkills, id: string): Promise<PlainRecord | null> {
  const [, name, version] = SKILL_ID.exec(id) ?? [];
  if (name === undefined) return null;
  const skill = await skillNamed(procedural, asked, `skills/${name}`, Number(version ?? 0));
  const { scope, createdAt } = skill;
  return { id: `${skill.name}@${skill.version}`, layer: 'procedural', kind: 'skill', scope, createdAt, fields: { ...skill } };
}

const hitMessage = (hit: MemoryHit) => toWire(MemoryHitSchema, { ...hit, ...provenanceOf(hit) });

function skillHitMessage({ skill, ...hit }: Awaited<ReturnType<typeof readableSkills>>[number]) {
  const { sources, scripted, createdAt, scope, description: text } = skill;
  const { agent, user } = scope;
  const id = `${skill.name}@${skill.version}`;
  const named = { id, layer: 'procedural', kind: 'skill', title: id, text, agent, user, scripted, createdAt, sources } as const;
  return toWire(MemoryHitSchema, { ...hit, ...named, ...provenanceOf(named) });
}

type Sides = Pick<LayerShows, 'shown' | 'withheld'>;

const added = (a: Sides, b: Sides): Sides => ({ shown: addSides(a.shown, b.shown), withheld: addSides(a.withheld, b.withheld) });

const byHarm = (a: Sides, b: Sides) => (successEffect(a)?.estimate ?? 0) - (successEffect(b)?.estimate ?? 0);

function itemLift(shows: LayerShows) {
  const { layer, kind, id, scope, archived } = shows;
  const { agent, user } = scope;
  return { layer, kind, id, agent, user: user ?? '', ...liftOf(shows), archiveReason: archived?.reason ?? '' };
}

function liftOf(sides: Sides) {
  const { shown, withheld } = sides;
  const counts = { shown: shown.n, shownRight: shown.right, withheld: withheld.n, withheldRight: withheld.right };
  const [success, tokens] = [successEffect(sides), tokenEffect(sides)];
  return { ...counts, ...(success === null ? {} : { success }), ...(tokens === null ? {} : { tokens }), harmful: isHarmful(sides) };
}
