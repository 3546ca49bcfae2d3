import {
  ConsolidationRunJob,
  MemorySettleJob,
  MemoryUpkeepJob,
  MemoryWriteJob,
  SkillRequest,
  SkillVerify,
  verificationOf,
} from '@etude/contracts/queues';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { templatesOf } from '@etude/domain/skills/life/skill-packages';
import { readSandboxPackages } from '@etude/platform/config';
import { RuffSecretlintAnalyser } from '@etude/analysis/static-analyser';
import type { ChatModel, Embedder } from '@etude/domain/ports/model';
import { type AdmissionDeps, checkSkill } from '@etude/domain/skills/proof/admit-skill';
import type { Memory } from '@etude/memory/memory';
import { memoryFrom } from '@etude/memory/open-memory';
import { chatModelFrom, embedderFrom } from '@etude/model/model-config';
import type { RunningWorker } from '@etude/platform/run-service';
import { countModelSpend } from '@etude/platform/metrics';
import { fileProofChecker, fileProofSigner, ownProofChecker } from '@etude/platform/proof-keys';
import { AgentSettingsStore, installationSettings } from '@etude/queue/agents/agent-settings-store';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import { consume, type Consumer } from '@etude/queue/jobs/consumer';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { OutboxReader, RedisMemoryOutbox } from '@etude/queue/memory/memory-outbox';
import { metered, SpendStore } from '@etude/queue/spend/spend-store';
import { Producer } from '@etude/queue/jobs/producer';
import type { QueueLogger } from '@etude/queue/redis/redis';
import { SettlingStore } from '@etude/queue/memory/settling-store';
import { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import { WantedSkills } from '@etude/queue/agents/wanted-skills';
import { NightlySchedules } from '@etude/queue/jobs/scheduler';
import { consolidationRunProcessor, storedStatuses } from './consolidation-run.processor.js';
import { type ConsolidationWorkerConfig, schedulesFrom } from './consolidation-worker.config.js';
import { embedderByName } from './move-vectors.js';
import { memorySettleProcessor, memoryUpkeepProcessor, memoryWriteProcessor, settleAll } from './memory.processors.js';
import { skillRequestProcessor, skillVerifyProcessor } from './skill.processors.js';

/** Writes wait for disk and embeddings. More at once would only wait for SQLite's single write lock. */
const WRITES_AT_ONCE = 4;
const RUNS_AT_ONCE = 2;
const VERIFICATIONS_AT_ONCE = 2;
const REQUESTS_AT_ONCE = 2;
/** More than one, so that an erasure doesn't wait for the end of a re-embedding. */
const UPKEEP_AT_ONCE = 3;
const TENANTS_SETTLED_AT_ONCE = 2;
/** Less than the 10 s after which a closing service is killed. */
const CLOSE_GRACE_MS = 8_000;

interface Parts {
  readonly analyser: RuffSecretlintAnalyser;
  readonly proofKeys: Pick<AdmissionDeps, 'signer' | 'checker'>;
  readonly memory: Memory;
  readonly embedder: Embedder;
  readonly model: ChatModel;
  readonly producer: Producer;
  readonly settling: SettlingStore;
  readonly schedules: NightlySchedules;
}

/**
 * Starts the consumers of all queues of memory and skills, with their adapters. Waits for Redis, and resolves once jobs are taken.
 *
 * Any number of workers may run: SQLite's lock orders their writes, and each write id is applied once.
 * @throws EtudeError FAILED_PRECONDITION, MEMORY_UNAVAILABLE, MEMORY_VERSION
 */
export async function startConsolidationWorker(
  config: ConsolidationWorkerConfig,
  logger: QueueLogger,
  tracing: Tracing = UNTRACED,
): Promise<RunningWorker> {
  const proofKeys = proofKeysFrom(config, logger);
  const embedder = await embedderFrom(config, { warn: (message) => logger.warn({}, message), tracing });
  const producer = new Producer(config.ETUDE_REDIS_URL, config.ETUDE_QUEUE_PREFIX, logger, { patient: true, tracing });
  const model = metered(chatModelFrom(config, tracing), new SpendStore(producer, config), countModelSpend);
  const settling = new SettlingStore(producer);
  const memory = await memoryFrom(config, {
    embedder,
    chatModel: model,
    proofChecker: proofKeys.checker,
    log: (message, details) => logger.warn(details, message),
    onUnsettled: (tenant) => settling.request(tenant),
  });
  const analyser = new RuffSecretlintAnalyser();
  const schedules = new NightlySchedules({ producer, logger, clock: { now: Date.now }, schedules: schedulesFrom(config) });
  await schedules.renew();
  const consumers = startConsumers(config, { memory, embedder, model, producer, settling, analyser, proofKeys, schedules }, logger);
  await Promise.all(consumers.map((consumer) => consumer.ready()));
  settleAll({ memory, settling }).catch((error: unknown) => logger.warn({ error }, 'unsettled facts wait for the next new fact'));
  return {
    checks: () => ({
      ...Object.fromEntries(consumers.map((consumer) => [consumer.queue, () => consumer.check()])),
      memory: () => memory.check(),
    }),
    drain: (ms) => Promise.all(consumers.map((consumer) => consumer.drain(ms))),
    async close() {
      await Promise.all(consumers.map((consumer) => consumer.close(CLOSE_GRACE_MS)));
      await producer.close();
      await analyser.close();
      await memory.close();
    },
  };
}

function startConsumers(
  config: ConsolidationWorkerConfig,
  { memory, embedder, model, producer, settling, analyser, proofKeys, schedules }: Parts,
  logger: QueueLogger,
): readonly Consumer[] {
  const { redis, keys, tracing } = producer;
  const clock = { now: Date.now };
  const reader = new OutboxReader(redis, keys);
  const settings = new AgentSettingsStore(redis, keys, installationSettings(config));
  const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix } = config;
  const options = (concurrency: number) => ({ redisUrl, prefix, concurrency, logger, tracing });
  const writes = memoryWriteProcessor({ memory, outbox: reader, producer, settings, logger, schedules });
  const verification = {
    ...proofKeys,
    procedural: memory.procedural,
    sandboxes: new QueueSandboxes(producer),
    analyser,
    clock,
    settings,
    mutationScoreMin: config.ETUDE_SKILLS_MUTATION_SCORE_MIN,
    templateFor: templatesOf(readSandboxPackages(config.ETUDE_SANDBOX_PACKAGES_PATH)),
  };
  const verifications = skillVerifyProcessor(producer, verification);
  const requests = skillRequestProcessor({
    ...verification,
    model,
    producer,
    wanted: new WantedSkills(producer),
    check: (candidate, signal) => checkSkill(candidate, verification, signal),
  });
  const runs = consolidationRunProcessor({
    ...memory,
    settings,
    embedder,
    model,
    clock,
    outbox: new RedisMemoryOutbox(producer),
    verifyAgain: (skill, round) => producer.add(SkillVerify, verificationOf(skill, round)),
    settledStatuses: storedStatuses(memory.procedural, config.ETUDE_CONSOLIDATION_SKILLS_WAIT_MS),
    pendingWrites: reader,
    runs: new ConsolidationStore(producer),
    writesWaitMs: config.ETUDE_CONSOLIDATION_WRITES_WAIT_MS,
    budget: { modelCallsMax: config.ETUDE_CONSOLIDATION_MODEL_CALLS_MAX, tokensMax: config.ETUDE_CONSOLIDATION_TOKENS_MAX },
  });
  const upkeep = memoryUpkeepProcessor({
    memory,
    producer,
    store: new UpkeepStore(producer),
    clock,
    usedModel: embedder.profile.model,
    embedderOf: (name, dimension) => embedderByName(config, name, dimension),
  });
  const callsPerDay = config.ETUDE_SETTLING_CALLS_PER_DAY;
  const settle = memorySettleProcessor({ memory, model, settling, settings, callsPerDay, logger });
  return [
    consume(MemoryWriteJob, writes, options(WRITES_AT_ONCE)),
    consume(SkillVerify, verifications, options(VERIFICATIONS_AT_ONCE)),
    consume(SkillRequest, requests, options(REQUESTS_AT_ONCE)),
    consume(ConsolidationRunJob, runs, options(RUNS_AT_ONCE)),
    consume(MemoryUpkeepJob, upkeep, options(UPKEEP_AT_ONCE)),
    consume(MemorySettleJob, settle, options(TENANTS_SETTLED_AT_ONCE)),
  ];
}

/** Proofs are signed with one key. Signatures of an earlier key stay valid while its public key is in the file. */
function proofKeysFrom(config: ConsolidationWorkerConfig, logger: QueueLogger): Parts['proofKeys'] {
  const { ETUDE_SKILLS_SIGNING_KEY_PATH: path, ETUDE_SKILLS_PUBLIC_KEYS_PATH: publicPath } = config;
  const report = (error: unknown) => logger.error({ error }, "the skills' public keys could not be reloaded; the old keys stay in use");
  const checker = publicPath === undefined ? ownProofChecker(path) : fileProofChecker(publicPath, report);
  return { signer: fileProofSigner(path), checker };
}
