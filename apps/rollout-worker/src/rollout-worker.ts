import { maskedOutbox, maskedWishes } from '@etude/analysis/masked';
import { RolloutLearn, RolloutRun } from '@etude/contracts/queues';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { parsedJson } from '@etude/contracts/json';
import { PROMPT_BUDGETS } from '@etude/domain/rollout/step-prompts';
import { templatesOf } from '@etude/domain/skills/life/skill-packages';
import { OutsideServers } from '@etude/mcp/outside-servers';
import { OutsideSecrets, type OutsideSettings } from '@etude/mcp/outside-settings';
import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { memoryFrom } from '@etude/memory/open-memory';
import { chatModelFrom, embedderFrom, modelConfig } from '@etude/model/model-config';
import { baseConfig, flag, readJsonFile, readSandboxPackages, sandboxPackagesConfig } from '@etude/platform/config';
import { countModelSpend } from '@etude/platform/metrics';
import { fileProofChecker, publicKeysConfig } from '@etude/platform/proof-keys';
import { controllerTls, tlsConfig } from '@etude/platform/tls';
import type { RunningWorker } from '@etude/platform/run-service';
import { agentSettingsConfig, AgentSettingsStore, installationSettings } from '@etude/queue/agents/agent-settings-store';
import { WantedSkills, wishesOf } from '@etude/queue/agents/wanted-skills';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { consume } from '@etude/queue/jobs/consumer';
import { tenantLimitsConfig } from '@etude/queue/limits/tenant-limits';
import { metered, SpendStore } from '@etude/queue/spend/spend-store';
import { RolloutPlaces } from '@etude/queue/tasks/rollout-places';
import { Producer } from '@etude/queue/jobs/producer';
import { RedisMemoryOutbox } from '@etude/queue/memory/memory-outbox';
import { connectRedis, type QueueLogger } from '@etude/queue/redis/redis';
import { RedisWorlds } from '@etude/queue/worlds/worlds-store';
import { ControllerChannels, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { RouterWorkSandboxes } from '@etude/queue/sandboxes/router-work-sandboxes';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { retentionFrom, taskConfig, TaskStore } from '@etude/queue/tasks/task-store';
import { z } from 'zod';
import { rolloutLearnProcessor, rolloutRunProcessor } from './rollout-run.processor.js';

const Commands = z.record(z.string(), z.tuple([z.string()], z.string()), {
  error: 'must be a JSON object of names and commands, such as {"memory": ["mcp-server-memory"]}',
});

const tokens = (standard: number) => z.number().int().min(100).max(100_000).default(standard);
const PromptTokens = z.strictObject({
  memory: tokens(PROMPT_BUDGETS.memory),
  result: tokens(PROMPT_BUDGETS.result),
  workingMemory: tokens(PROMPT_BUDGETS.workingMemory),
  findings: tokens(PROMPT_BUDGETS.findings),
  history: tokens(PROMPT_BUDGETS.history),
});

export const rolloutWorkerConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(memoryConfig.shape)
    .extend(agentSettingsConfig.shape)
    .extend(taskConfig.shape)
    .extend(tenantLimitsConfig.shape)
    .extend(publicKeysConfig.shape)
    .extend(tlsConfig.shape)
    .extend(sandboxPackagesConfig.shape)
    .extend({
      /** Concurrent rollouts in this process. For each eight of them, one more may run for a tenant that has no running rollout. */
      ETUDE_ROLLOUT_CONCURRENCY: z.coerce.number().int().min(1).max(1_000).default(8),
      /** Longest time, in ms, for learning from a task. After it, the task's episode gets a summary that is made without a model. */
      ETUDE_LEARNING_WALL_MS: z.coerce.number().int().min(1_000).max(3_000_000).default(600_000),
      /** Most tokens that all model calls for learning from one task may use. */
      ETUDE_LEARNING_TOKENS_MAX: z.coerce.number().int().min(100).max(10_000_000).default(100_000),
      /** Tokens for parts of a prompt. Default: `{"memory": 800, "result": 2000, "workingMemory": 1000, "findings": 800, "history": 1500}`. */
      ETUDE_ROLLOUT_PROMPT_TOKENS: z.string().default('{}').transform(parsedJson).pipe(PromptTokens),
      /**
       * Probability with which a rollout doesn't see a recalled item, so that `etude lift` can measure the effect of memory. 0: all items are
       * shown, and nothing is measured.
       */
      ETUDE_RECALL_WITHHOLD_PROBABILITY: z.coerce.number().min(0).max(0.5).default(0.05),
      /**
       * Commands that start MCP servers over stdio, as a JSON object of names and commands, such as {"memory": ["mcp-server-memory"]}.
       * Agents can use no other commands.
       */
      ETUDE_MCP_COMMANDS: z.string().default('{}').transform(parsedJson).pipe(Commands),
      /**
       * JSON file with the secrets that agents' settings refer to by name. {"NAME": "VALUE"} is for any server. {"NAME": {"value": "VALUE",
       * "servers": ["mcp.example.com"], "tenants": ["acme"]}} is for these hosts or commands, and for these tenants.
       */
      ETUDE_MCP_SECRETS_PATH: z.string().min(1).optional(),
      /** Whether agents may use MCP servers with loopback or private addresses. Agents could then reach other services of this network. */
      ETUDE_MCP_PRIVATE_ADDRESSES: flag().prefault('false'),
      /** Shared secret of rollout workers and sandbox controllers. Unset: rollouts can't work in sandboxes of their own. */
      ETUDE_SANDBOX_INTERNAL_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
    }),
);
type RolloutWorkerConfig = z.infer<typeof rolloutWorkerConfig>;

/** Less than the 10 s after which a closing service is killed. */
const CLOSE_GRACE_MS = 8_000;

const outsideSettings = (config: RolloutWorkerConfig, debug: OutsideSettings['debug']): OutsideSettings => ({
  commands: config.ETUDE_MCP_COMMANDS,
  secrets: config.ETUDE_MCP_SECRETS_PATH ? readJsonFile('file of MCP secrets', config.ETUDE_MCP_SECRETS_PATH, OutsideSecrets) : {},
  privateAddresses: config.ETUDE_MCP_PRIVATE_ADDRESSES,
  debug,
});

/**
 * Starts the consumers of `rollout.run` and `rollout.learn`, and their adapters. Waits for Redis, and resolves when jobs are taken. Any
 * number of workers may run.
 *
 * @throws EtudeError FAILED_PRECONDITION, MEMORY_UNAVAILABLE, MEMORY_VERSION
 */
export async function startRolloutWorker(
  config: RolloutWorkerConfig,
  logger: QueueLogger,
  tracing: Tracing = UNTRACED,
): Promise<RunningWorker> {
  const { ETUDE_REDIS_URL: redisUrl, ETUDE_QUEUE_PREFIX: prefix } = config;
  const producer = new Producer(redisUrl, prefix, logger, { patient: true, tracing });
  const model = metered(chatModelFrom(config, tracing), new SpendStore(producer, config), countModelSpend);
  const embedder = await embedderFrom(config, { warn: (message) => logger.warn({}, message), tracing });
  const checker = fileProofChecker(config.ETUDE_SKILLS_PUBLIC_KEYS_PATH, (error) =>
    logger.error({ error }, "the skills' public keys could not be reloaded; the old keys stay in use"),
  );
  const memory = await memoryFrom(config, {
    embedder,
    chatModel: model,
    proofChecker: checker,
    log: (message, details) => logger.warn(details, message),
  });
  const retention = retentionFrom(config);
  const redis = connectRedis(redisUrl, 'worker', logger);
  const tasks = new TaskStore(producer, retention);
  const { episodic, semantic, procedural } = memory;
  const outsideTools = new OutsideServers(outsideSettings(config, (details, message) => logger.debug?.(details, message)));
  const router = routerFrom(config, producer);
  const ports = {
    model,
    tracing,
    episodic,
    semantic,
    procedural,
    outsideTools,
    embedder,
    moveInWorld: new RedisWorlds(producer.redis, producer.keys).move,
    wishes: maskedWishes(wishesOf(new WantedSkills(producer))),
    withholding: { probability: config.ETUDE_RECALL_WITHHOLD_PROBABILITY, counters: memory.shows },
    promptBudgets: config.ETUDE_ROLLOUT_PROMPT_TOKENS,
    sandboxes: new QueueSandboxes(producer),
    workSandboxes: new RouterWorkSandboxes(router),
    outbox: maskedOutbox(new RedisMemoryOutbox(producer)),
    clock: { now: Date.now },
    settings: new AgentSettingsStore(producer.redis, producer.keys, installationSettings(config)),
    templateFor: templatesOf(readSandboxPackages(config.ETUDE_SANDBOX_PACKAGES_PATH)),
    checker,
  };
  const limits = { wallMs: config.ETUDE_LEARNING_WALL_MS, modelTokensMax: config.ETUDE_LEARNING_TOKENS_MAX };
  const deps = { tasks, journals: { redis, keys: producer.keys, ...retention }, logger };
  const options = { redisUrl, prefix, concurrency: config.ETUDE_ROLLOUT_CONCURRENCY, logger, tracing };
  const places = await RolloutPlaces.open(producer.redis, producer.keys, config.ETUDE_ROLLOUT_CONCURRENCY);
  const inLine = { ...options, concurrency: places.jobsMax, admit: places.admit };
  const consumers = [
    consume(RolloutRun, rolloutRunProcessor({ ...deps, ports }), inLine),
    consume(RolloutLearn, rolloutLearnProcessor({ ...deps, ports: { ...ports, limits } }), options),
  ];
  await Promise.all(consumers.map((consumer) => consumer.ready()));
  return {
    checks: () => ({
      ...Object.fromEntries(consumers.map((consumer) => [consumer.queue, () => consumer.check()])),
      memory: () => memory.check(),
    }),
    drain: (ms) => Promise.all(consumers.map((consumer) => consumer.drain(ms))),
    // Running rollouts stop here. Another worker continues them after their last journaled step.
    async close() {
      await Promise.all(consumers.map((consumer) => consumer.close(CLOSE_GRACE_MS)));
      await outsideTools.close();
      router.close();
      await producer.close();
      redis.disconnect();
      await memory.close();
    },
  };
}

function routerFrom(config: RolloutWorkerConfig, { redis, keys, tracing }: Producer): SandboxRouter {
  const { ETUDE_SANDBOX_INTERNAL_TOKEN: token } = config;
  const channels = token === undefined ? null : new ControllerChannels(token, controllerTls(config));
  const sessions = new SandboxSessionStore(redis, keys);
  return new SandboxRouter({ sessions, directory: new ControllerDirectory(redis, keys), channels, tracing });
}
