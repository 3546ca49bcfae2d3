import { randomUUID } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import {
  FactDecisionSchema,
  type Memory as MemoryService,
  type StoreEpisodeRequest,
  StoreEpisodeRequestSchema,
  StoreFactRequestSchema,
  type UpdateFactRequest,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { SkillName } from '@etude/contracts/ids';
import { isDeeper } from '@etude/contracts/json';
import { Experience, Fact, type Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { isVisible, VisibleText } from '@etude/contracts/visible-text';
import { experienceEpisode, type ToldExperience } from '@etude/domain/experience/experience-episode';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { countWordsUsed } from '@etude/domain/skills/life/told-procedure';
import { claimRequest } from '@etude/memory/layers/repeats';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { Memory } from '@etude/memory/memory';
import type { SettlingStore } from '@etude/queue/memory/settling-store';
import type { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import { z } from 'zod';
import { requireOwnRecord } from '../calls/roles.js';
import type { CallContext } from '../calls/caller.js';
import type { Handlers } from '../calls/calls.js';
import { ownScope, readScope } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { optionalRequestId } from '../wire/names.js';
import { boundedCount, invalidField, parseField, refuseAny } from '@etude/contracts/wire/validation';
import { episodeMessage, factMessage, procedureMessage } from './record-message.js';
import { refuseSecrets } from '../calls/told-secrets.js';

export interface MemoryDeps extends Pick<SkillDeps, 'memory' | 'settings' | 'registration' | 'templateFor' | 'outbox'> {
  readonly upkeep: UpkeepStore;
  readonly settling: SettlingStore;
}

const DAY_MS = 86_400_000;
const DAYS = { max: 36_500, standard: 7 };
const RECENT = { max: 1_000, standard: 10 };
const WITH_SKILL = { max: 1_000, standard: 5 };

const Fraction = z.number().min(0).max(1);
const Prompt = VisibleText.max(1_000_000);
const Word = VisibleText.max(200);
const ToldFact = Fact.pick({ text: true, subject: true }).extend({
  category: Word.default('general'),
  confidence: Fraction.default(1),
  source: Word.default('told'),
});
const Told = Experience.extend({
  skillsUsed: z.array(z.string().trim().min(1).max(200)).max(1_000),
  reflection: z.string().max(100_000),
  importance: Fraction.default(0.5),
});

/** The writing calls of `etude.v1.Memory`, except documents. An answered write is visible to the next call. */
export const recordCalls = {
  async storeEpisode(request, call, deps) {
    const told = toldEpisode(request, ownScope(call, request), Date.now());
    const { scope, key, at: _at, ...content } = told;
    await refuseSecrets({ ...told.experience, reflection: told.reflection });
    const memory = await deps.memory.open();
    if (key !== null) await writeIdOf(memory, { layer: 'episodic', scope, requestId: key, content });
    const episode = experienceEpisode(told);
    const { episodic, procedural } = memory;
    await episodic.storeEpisode(episode);
    const { skillsUsed: names, success, id: useId, createdAt: at } = episode;
    await countWordsUsed({ procedural, outbox: deps.outbox }, episode.scope, { names, success, useId, at });
    const stored = await episodic.get({ tenant: episode.scope.tenant, agent: null }, episode.id);
    return episodeMessage(stored !== null && 'summary' in stored ? stored : episode, call.roles);
  },

  async listRecentEpisodes(request, call, deps) {
    const scope = readScope(call, request);
    const days = boundedCount(request.days, 'days', DAYS);
    const limit = boundedCount(request.limit, 'limit', request.skill === '' ? RECENT : WITH_SKILL);
    const { episodic } = await deps.memory.open();
    const since = request.skill !== '' && request.days === 0 ? 0 : Date.now() - days * DAY_MS;
    const episodes =
      request.skill === ''
        ? await episodic.recent(scope, since, limit)
        : (await episodic.bySkill(scope, request.skill, limit)).filter(({ createdAt }) => createdAt >= since);
    const { roles } = call;
    return { episodes: episodes.map((episode) => episodeMessage(episode, roles)) };
  },

  async storeFact(request, call, deps) {
    const scope = ownScope(call, request);
    const told: Fact = {
      ...fromWire(ToldFact, StoreFactRequestSchema, request),
      id: '',
      scope,
      episodes: [],
      support: 1,
      accessCount: 0,
      createdAt: Date.now(),
    };
    await refuseSecrets({ text: told.text, subject: told.subject ?? '', category: told.category });
    const memory = await deps.memory.open();
    const { id: _id, scope: _scope, createdAt: _createdAt, ...content } = told;
    const writeId = await writeIdOf(memory, { layer: 'semantic', scope, requestId: request.requestId, content });
    const { fact, outcome, replaced } = await memory.semantic.store(writeId, told);
    return { fact: factMessage(fact), outcome, replaced: [...replaced] };
  },

  async updateFact(request, call, deps) {
    optionalRequestId(request.requestId);
    const paths = updatedPaths(request);
    const change = {
      ...(paths.includes('text') ? { text: parseField(Fact.shape.text, request.text, 'text') } : {}),
      ...(paths.includes('confidence') ? { confidence: parseField(Fraction, request.confidence, 'confidence') } : {}),
    };
    await refuseSecrets({ text: change.text ?? '' });
    const memory = await deps.memory.open();
    await requireOwnFacts(memory, call, [request.id]);
    return factMessage(await memory.semantic.update(readScope(call), request.id, change));
  },

  async listFactHistory({ id }, call, deps) {
    return factHistory(await deps.memory.open(), readScope(call), id);
  },

  async undoFactDecision({ id, other }, call, deps) {
    const scope = readScope(call);
    const memory = await deps.memory.open();
    await requireOwnFacts(memory, call, [id, other]);
    const undone = await memory.semantic.undoDecision(scope, [id, other], call.name);
    if (undone === null)
      throw new EtudeError('NOT_FOUND', `There is no decision about the facts ${JSON.stringify(id)} and ${JSON.stringify(other)} to undo.`);
    if (undone.newer.unsettled !== undefined) await deps.settling.request(scope.tenant);
    return factHistory(memory, scope, id);
  },

  async storeProcedure(request, call, deps) {
    const scope = ownScope(call, request);
    const name = parseField(SkillName, request.name, 'name');
    const prompt = parseField(Prompt, request.prompt, 'prompt');
    await refuseSecrets({ prompt });
    const { settings } = await deps.settings.get(scope.tenant, scope.agent);
    const memory = await deps.memory.open();
    const { requestId } = request;
    const writeId = await writeIdOf(memory, { layer: 'procedural', scope, requestId, content: { name, prompt } });
    const options = { namesMax: settings.maxSkills, by: call.name };
    const stored = await memory.procedural.storeProcedure(writeId, scope, name, prompt, options);
    await deps.registration.requestVerification(stored);
    return procedureMessage(stored);
  },
} satisfies Handlers<typeof MemoryService, MemoryDeps>;

/** @throws EtudeError PERMISSION_DENIED for a fact of the whole tenant, if the caller is bound to a user */
async function requireOwnFacts(memory: Memory, call: CallContext, ids: readonly string[]): Promise<void> {
  if (call.user === undefined) return;
  for (const id of ids) requireOwnRecord(call, (await memory.get(readScope(call), 'semantic', id))?.scope);
}

/** @throws EtudeError NOT_FOUND */
async function factHistory({ semantic }: Memory, scope: ReadScope, id: string) {
  const facts = await semantic.history(scope, id);
  if (facts.length === 0) throw new EtudeError('NOT_FOUND', `There is no fact ${JSON.stringify(id)}; list the facts to see which exist.`);
  const decisions = await semantic.decisions(scope, facts);
  return { facts: facts.map(factMessage), decisions: decisions.map((decision) => toWire(FactDecisionSchema, decision)) };
}

/** The paths of the mask, or without a mask the fields that aren't empty or 0. @throws EtudeError INVALID_ARGUMENT */
function updatedPaths({ updateMask, text, confidence }: UpdateFactRequest): readonly string[] {
  const given = [...(text === '' ? [] : ['text']), ...(confidence === 0 ? [] : ['confidence'])];
  const paths = updateMask?.paths ?? given;
  const unknown = paths.find((path) => path !== 'text' && path !== 'confidence');
  if (paths.length === 0 || unknown !== undefined)
    throw invalidField('update_mask', `must name "text", "confidence" or both, but names ${unknown ?? 'nothing'}`);
  return paths;
}

/** Protobuf decoders accept 100 nested messages. One JSON object takes three. */
const OUTCOME_DEPTH_MAX = 24;

/** @throws EtudeError INVALID_ARGUMENT naming the field */
function toldEpisode(request: StoreEpisodeRequest, scope: Scope, at: number): ToldExperience {
  const { context, actions, outcomes, ...told } = fromWire(Told, StoreEpisodeRequestSchema, request);
  if (!context.some(isVisible)) throw invalidField('context', 'must have visible text');
  refuseDeep(outcomes);
  return { ...told, scope, experience: { context, actions, outcomes }, key: optionalRequestId(request.requestId), at };
}

function refuseDeep(outcomes: readonly unknown[]): void {
  const description = `is nested deeper than ${OUTCOME_DEPTH_MAX} lists and objects; make it flatter, or pass the inner part as text`;
  refuseAny(outcomes.flatMap((outcome, i) => (isDeeper(outcome, OUTCOME_DEPTH_MAX) ? [{ field: `outcomes[${i}]`, description }] : [])));
}

interface WriteRequest {
  readonly layer: MemoryLayer;
  readonly scope: Scope;
  /** As sent by the caller; empty: none. */
  readonly requestId: string;
  /** Everything in the record except its time. */
  readonly content: unknown;
}

/**
 * The id of a write, the same for repeats of one request. Its digest of owner and content keeps different requests apart.
 *
 * @throws EtudeError ALREADY_EXISTS if the request id was used for other content or by another owner
 */
export async function writeIdOf({ store }: Pick<Memory, 'store'>, { layer, scope, requestId, content }: WriteRequest): Promise<string> {
  const key = optionalRequestId(requestId);
  if (key === null) return `told.${randomUUID()}`;
  const digest = contentDigest({ agent: scope.agent, user: scope.user, content });
  await claimRequest(store, { layer, scope, requestId: key, digest, at: Date.now(), unsynced: true });
  return `told.${key}.${digest}`;
}
