import { RuffSecretlintAnalyser } from '@etude/analysis/static-analyser';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ChatModel } from '@etude/domain/ports/model';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { templatesOf } from '@etude/domain/skills/life/skill-packages';
import { memoryFrom } from '@etude/memory/open-memory';
import { chatModelFrom, DEFAULT_BASE_URL } from '@etude/model/model-config';
import { loadKeys } from '@etude/platform/auth';
import { type HealthCheck, HealthModule } from '@etude/platform/health';
import { fileProofChecker } from '@etude/platform/proof-keys';
import { readSandboxPackages } from '@etude/platform/sandbox-packages';
import { loggerModule } from '@etude/platform/logging';
import { installationSettings } from '@etude/queue/agents/agent-settings-config';
import { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import { ControllerDirectory } from '@etude/queue/sandboxes/controller-directory';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import { DeadLetters } from '@etude/queue/jobs/dead-letters';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { RedisMemoryOutbox } from '@etude/queue/memory/memory-outbox';
import { Producer } from '@etude/queue/jobs/producer';
import { type QueueLogger, whileRedisAnswers } from '@etude/queue/redis/redis';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import { WantedSkills } from '@etude/queue/agents/wanted-skills';
import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR } from '@nestjs/core';
import { AgentsController } from './agents/agents.controller.js';
import { Authenticator } from './calls/authenticator.js';
import { CallGuard } from './calls/call.guard.js';
import { MetricsInterceptor } from './calls/metrics.interceptor.js';
import { StatusFilter } from './calls/status.filter.js';
import { TenantCallsInterceptor } from './calls/tenant-calls.interceptor.js';
import { ConsolidationController } from './consolidation/consolidation.controller.js';
import { type GatewayConfig, ownAddress } from './gateway.config.js';
import { MemoryAccess } from './memory/memory-access.js';
import { DocumentsController } from './memory/documents.controller.js';
import { MemoryOperatorController } from './memory/memory-operator.controller.js';
import { MemoryRecordsController } from './memory/memory-records.controller.js';
import { MemorySearchController } from './memory/memory-search.controller.js';
import { MemoryUpkeepController } from './memory/memory-upkeep.controller.js';
import { McpServer } from './mcp/mcp-server.js';
import { mcpServerFrom } from './mcp/open-mcp-server.js';
import { QueuesController } from './queues/queues.controller.js';
import { ControllerChannels } from './sandboxes/controller-channels.js';
import { SandboxRouter } from './sandboxes/sandbox-router.js';
import { SandboxesController } from './sandboxes/sandboxes.controller.js';
import { RestServer } from './rest/rest-server.js';
import { Drain } from './server/drain.js';
import { HealthReporter } from './server/health-reporter.js';
import { Upkeep } from './server/upkeep.js';
import { SkillFilesController } from './skills/skill-files.controller.js';
import { SkillHygieneController } from './skills/skill-hygiene.controller.js';
import { SkillRegistration } from './skills/skill-registration.js';
import { SkillServices } from './skills/skill-services.js';
import { SkillsReadController } from './skills/skills-read.controller.js';
import { SkillsRegistryController } from './skills/skills-registry.controller.js';
import { SkillsReviewController } from './skills/skills-review.controller.js';
import { SkillsUseController } from './skills/skills-use.controller.js';
import { WantedSkillsController } from './skills/wanted-skills.controller.js';
import { redisEvents } from './tasks/task-events.js';
import { TaskWatcher } from './tasks/task-watcher.js';
import { TasksController } from './tasks/tasks.controller.js';
import { ToolServices } from './tools/tool-services.js';
import { ToolsController } from './tools/tools.controller.js';

/** A model is not needed here; with one, searches can have it order what they found. */
function rerankerOf(config: GatewayConfig): { readonly chatModel?: ChatModel } {
  const isSet = config.OPENAI_API_KEY !== undefined || config.OPENAI_BASE_URL !== DEFAULT_BASE_URL;
  return isSet ? { chatModel: chatModelFrom(config) } : {};
}

/** What the server needs before the module exists, made once. */
export interface GatewayParts {
  readonly embedder: Embedder;
  readonly producer: Producer;
  readonly memory: MemoryAccess;
  /** Believes signatures under evidence, of what runs as of what memory lets become active. */
  readonly checker: ProofChecker;
  readonly drain: Drain;
  readonly health: HealthReporter;
  readonly checks: Readonly<Record<string, HealthCheck>>;
}

export function gatewayParts(config: GatewayConfig, embedder: Embedder, logger: QueueLogger): GatewayParts {
  const producer = new Producer(config.ETUDE_REDIS_URL, config.ETUDE_QUEUE_PREFIX, logger);
  const checker = fileProofChecker(config.ETUDE_SKILLS_PUBLIC_KEYS_PATH, (error) =>
    logger.error({ err: error }, 'The file of public keys is wrong; its last good keys stay in force'),
  );
  const memory = new MemoryAccess(() =>
    memoryFrom(config, {
      embedder,
      proofChecker: checker,
      ...rerankerOf(config),
      log: (message, details) => logger.warn(details, message),
    }),
  );
  const redis = async () => void (await whileRedisAnswers(producer.redis, producer.redis.ping()));
  const checks = { redis, memory: () => memory.check() };
  const health = new HealthReporter(checks.redis, checks.memory);
  return { embedder, producer, memory, checker, drain: new Drain(), health, checks };
}

function authenticator(config: GatewayConfig, logger: QueueLogger): Authenticator {
  const report = (error: unknown) => logger.error({ err: error }, 'The key file is wrong; its last good keys stay in force');
  const { ETUDE_AUTH_KEYS_PATH: keys, ETUDE_AUTH_ANONYMOUS_TENANT: anonymous } = config;
  return new Authenticator(keys === undefined ? null : loadKeys(keys, report), anonymous ?? null);
}

function sandboxRouter(config: GatewayConfig, producer: Producer, sessions: SandboxSessionStore): SandboxRouter {
  const token = config.ETUDE_SANDBOX_INTERNAL_TOKEN;
  const directory = new ControllerDirectory(producer.redis, producer.keys);
  return new SandboxRouter({ sessions, directory, channels: token === undefined ? null : new ControllerChannels(token) });
}

function skillServices(
  config: GatewayConfig,
  { producer, checker }: Pick<GatewayParts, 'producer' | 'checker'>,
  settings: AgentSettingsStore,
): SkillServices {
  const sandboxes = new QueueSandboxes(producer);
  const templateFor = templatesOf(readSandboxPackages(config.ETUDE_SANDBOX_PACKAGES_PATH));
  return new SkillServices({
    sandboxes,
    templateFor,
    settings,
    outbox: new RedisMemoryOutbox(producer),
    checker,
    analyser: new RuffSecretlintAnalyser(),
    mutationScoreMin: config.ETUDE_SKILLS_MUTATION_SCORE_MIN,
    registration: new SkillRegistration({ sandboxes, settings, producer, templateFor }),
    wanted: new WantedSkills(producer, config.ETUDE_SKILLS_WISHES_OPEN_MAX),
  });
}

/** The services of `etude.v1` over the parts they share. */
export class GatewayModule {
  static forRoot(config: GatewayConfig, parts: GatewayParts, logger: QueueLogger): DynamicModule {
    const { embedder, producer, memory, drain, health, checks } = parts;
    const tasks = new TaskStore(producer);
    const sessions = new SandboxSessionStore(producer.redis, producer.keys);
    const settings = new AgentSettingsStore(producer.redis, producer.keys, installationSettings(config));
    const skills = skillServices(config, parts, settings);
    const sandboxes = sandboxRouter(config, producer, sessions);
    const codeSessions = {
      router: sandboxes,
      sandboxes: sessions,
      openMax: config.ETUDE_TOOLS_SANDBOXES_OPEN_MAX,
      log: (message: string, details: object) => logger.warn(details, message),
    };
    const provider = config.ETUDE_REST_PROVIDER;
    const tools = new ToolServices({ producer, memory, embedder, skills: skills.parts, codeSessions, provider });
    const authenticate = authenticator(config, logger);
    return {
      module: GatewayModule,
      imports: [loggerModule('gateway', config), HealthModule.forRoot({ checks })],
      controllers: [
        TasksController,
        SkillsReadController,
        SkillsRegistryController,
        SkillsReviewController,
        SkillsUseController,
        SkillFilesController,
        SkillHygieneController,
        WantedSkillsController,
        ToolsController,
        MemorySearchController,
        MemoryRecordsController,
        DocumentsController,
        MemoryUpkeepController,
        MemoryOperatorController,
        ConsolidationController,
        QueuesController,
        SandboxesController,
        AgentsController,
      ],
      providers: [
        { provide: Producer, useValue: producer },
        { provide: TaskStore, useValue: tasks },
        { provide: TaskWatcher, useValue: new TaskWatcher(tasks, redisEvents(producer)) },
        { provide: ConsolidationStore, useValue: new ConsolidationStore(producer.redis, producer.keys) },
        { provide: RestServer, useValue: new RestServer(ownAddress(config), authenticate, { provider }) },
        { provide: McpServer, useValue: mcpServerFrom(config, authenticate, logger) },
        { provide: UpkeepStore, useValue: new UpkeepStore(producer) },
        { provide: AgentSettingsStore, useValue: settings },
        { provide: SkillServices, useValue: skills },
        { provide: WantedSkills, useValue: skills.parts.wanted },
        { provide: ToolServices, useValue: tools },
        { provide: DeadLetters, useValue: new DeadLetters(producer, tasks) },
        { provide: SandboxSessionStore, useValue: sessions },
        { provide: SandboxRouter, useValue: sandboxes },
        { provide: MemoryAccess, useValue: memory },
        { provide: Drain, useValue: drain },
        { provide: Authenticator, useValue: authenticate },
        {
          provide: Upkeep,
          useValue: new Upkeep({ producer, tasks, memory, health, sandboxes, intervalMs: config.ETUDE_RECONCILER_INTERVAL_MS, logger }),
        },
        { provide: APP_GUARD, useClass: CallGuard },
        { provide: APP_INTERCEPTOR, useClass: MetricsInterceptor },
        { provide: APP_INTERCEPTOR, useValue: new TenantCallsInterceptor(config.ETUDE_CALLS_PER_TENANT_MAX) },
        { provide: APP_FILTER, useClass: StatusFilter },
      ],
    };
  }
}
