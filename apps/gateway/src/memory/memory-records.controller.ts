import { EtudeError } from '@etude/contracts/errors';
import type {
  ListFactHistoryRequest,
  ListRecentEpisodesRequest,
  Memory as MemoryService,
  StoreEpisodeRequest,
  StoreFactRequest,
  StoreProcedureRequest,
  UpdateFactRequest,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { GrpcController, ServerCall } from '@etude/contracts/grpc';
import { SkillName } from '@etude/contracts/ids';
import { Fact } from '@etude/contracts/memory';
import { VisibleText } from '@etude/contracts/visible-text';
import { experienceEpisode } from '@etude/domain/experience/experience-episode';
import { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import type { Metadata } from '@grpc/grpc-js';
import { Controller } from '@nestjs/common';
import { GrpcMethod } from '@nestjs/microservices';
import { z } from 'zod';
import { contextOf } from '../calls/call-context.js';
import { SkillServices } from '../skills/skill-services.js';
import { optionalRequestId } from '../wire/resource-name.js';
import { boundedCount, invalidField, parseField } from '../wire/validation.js';
import { MemoryAccess } from './memory-access.js';
import { episodeMessage, factMessage, procedureMessage } from './memory-record.mapping.js';
import { ownScope, readScope } from './memory-scope.js';
import { toldEpisode } from './told-episode.js';
import { writeIdOf } from './write-request.js';

type Methods = 'storeEpisode' | 'listRecentEpisodes' | 'storeFact' | 'updateFact' | 'listFactHistory' | 'storeProcedure';

const DAY_MS = 86_400_000;
const DAYS = { max: 36_500, standard: 7 };
const RECENT = { max: 1_000, standard: 10 };
const WITH_SKILL = { max: 1_000, standard: 5 };

const Fraction = z.number().min(0).max(1);
const Prompt = VisibleText.max(1_000_000);
const Category = VisibleText.max(200);
const Subject = Fact.shape.subject;

/** The writing half of `etude.v1.Memory`, but for documents. What was answered is read by the next call. */
@Controller()
export class MemoryRecordsController implements Pick<GrpcController<typeof MemoryService>, Methods> {
  constructor(
    private readonly access: MemoryAccess,
    private readonly settings: AgentSettingsStore,
    private readonly skills: SkillServices,
  ) {}

  @GrpcMethod('Memory')
  async storeEpisode(request: StoreEpisodeRequest, _metadata: Metadata, call: ServerCall) {
    const told = toldEpisode(request, ownScope(call, request), Date.now());
    const { scope, key, at: _at, ...content } = told;
    const memory = await this.access.open();
    if (key !== null) await writeIdOf(memory, { layer: 'episodic', scope, requestId: key, content });
    const episode = experienceEpisode(told);
    const { episodic } = memory;
    await episodic.storeEpisode(episode);
    const stored = await episodic.get({ tenant: episode.scope.tenant, agent: null }, episode.id);
    return episodeMessage(stored !== null && 'summary' in stored ? stored : episode, contextOf(call).roles);
  }

  @GrpcMethod('Memory')
  async listRecentEpisodes(request: ListRecentEpisodesRequest, _metadata: Metadata, call: ServerCall) {
    const scope = readScope(call, request);
    const days = boundedCount(request.days, 'days', DAYS);
    const limit = boundedCount(request.limit, 'limit', request.skill === '' ? RECENT : WITH_SKILL);
    const { episodic } = await this.access.open();
    const since = request.skill !== '' && request.days === 0 ? 0 : Date.now() - days * DAY_MS;
    const episodes =
      request.skill === ''
        ? await episodic.recent(scope, since, limit)
        : (await episodic.bySkill(scope, request.skill, limit)).filter(({ createdAt }) => createdAt >= since);
    const { roles } = contextOf(call);
    return { episodes: episodes.map((episode) => episodeMessage(episode, roles)) };
  }

  @GrpcMethod('Memory')
  async storeFact(request: StoreFactRequest, _metadata: Metadata, call: ServerCall) {
    const scope = ownScope(call, request);
    const now = Date.now();
    const told: Fact = {
      id: '',
      scope,
      text: parseField(Fact.shape.text, request.text, 'text'),
      category: parseField(Category, request.category || 'general', 'category'),
      confidence: parseField(Fraction.default(1), request.confidence, 'confidence'),
      source: parseField(Category, request.source || 'told', 'source'),
      episodes: [],
      support: 1,
      accessCount: 0,
      createdAt: now,
      ...(request.subject === '' ? {} : { subject: parseField(Subject, request.subject, 'subject') }),
    };
    const memory = await this.access.open();
    const { id: _id, scope: _scope, createdAt: _createdAt, ...content } = told;
    const writeId = await writeIdOf(memory, { layer: 'semantic', scope, requestId: request.requestId, content });
    const { fact, outcome, replaced } = await memory.semantic.store(writeId, told);
    return { fact: factMessage(fact), outcome, replaced: [...replaced] };
  }

  @GrpcMethod('Memory')
  async updateFact(request: UpdateFactRequest, _metadata: Metadata, call: ServerCall) {
    optionalRequestId(request.requestId);
    const paths = updatedPaths(request);
    const change = {
      ...(paths.includes('text') ? { text: parseField(Fact.shape.text, request.text, 'text') } : {}),
      ...(paths.includes('confidence') ? { confidence: parseField(Fraction, request.confidence, 'confidence') } : {}),
    };
    const { semantic } = await this.access.open();
    return factMessage(await semantic.update(readScope(call), request.id, change));
  }

  @GrpcMethod('Memory')
  async listFactHistory({ id }: ListFactHistoryRequest, _metadata: Metadata, call: ServerCall) {
    const { semantic } = await this.access.open();
    const facts = await semantic.history(readScope(call), id);
    if (facts.length === 0) throw new EtudeError('NOT_FOUND', `There is no fact ${JSON.stringify(id)}.`);
    return { facts: facts.map(factMessage) };
  }

  @GrpcMethod('Memory')
  async storeProcedure(request: StoreProcedureRequest, _metadata: Metadata, call: ServerCall) {
    const scope = ownScope(call, request);
    const name = parseField(SkillName, request.name, 'name');
    const prompt = parseField(Prompt, request.prompt, 'prompt');
    const { settings } = await this.settings.get(scope.tenant, scope.agent);
    const memory = await this.access.open();
    const { requestId } = request;
    const writeId = await writeIdOf(memory, { layer: 'procedural', scope, requestId, content: { name, prompt } });
    const options = { namesMax: settings.maxSkills, by: contextOf(call).name };
    const stored = await memory.procedural.storeProcedure(writeId, scope, name, prompt, options);
    await this.skills.parts.registration.requestVerification(stored);
    return procedureMessage(stored);
  }
}

/** Without a mask, what is not left out, as in any message: 0 can't be told from that. @throws EtudeError INVALID_ARGUMENT */
function updatedPaths({ updateMask, text, confidence }: UpdateFactRequest): readonly string[] {
  const given = [...(text === '' ? [] : ['text']), ...(confidence === 0 ? [] : ['confidence'])];
  const paths = updateMask?.paths ?? given;
  const unknown = paths.find((path) => path !== 'text' && path !== 'confidence');
  if (paths.length === 0 || unknown !== undefined)
    throw invalidField('update_mask', `must name "text", "confidence" or both; it names ${unknown ?? 'nothing'}`);
  return paths;
}
