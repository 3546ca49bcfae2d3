import { setTimeout as sleep } from 'node:timers/promises';
import { maskedOutbox, maskedWishes } from '@etude/analysis/masked';
import { RuffSecretlintAnalyser } from '@etude/analysis/static-analyser';
import { EtudeError } from '@etude/contracts/errors';
import { SERVICES } from '@etude/contracts/grpc';
import type { ListeningServer } from '@etude/contracts/grpc-server';
import type { Embedder } from '@etude/domain/ports/model';
import { agentTools, type AgentToolsDeps, type ToolRegistry } from '@etude/domain/tools/agent-tools';
import { worldTools } from '@etude/domain/tools/world-tools';
import { templatesOf } from '@etude/domain/skills/life/skill-packages';
import { memoryFrom } from '@etude/memory/open-memory';
import { fileProofChecker } from '@etude/platform/proof-keys';
import { readSandboxPackages } from '@etude/platform/config';
import type { Tracing } from '@etude/contracts/tracing';
import { type ProcessTracing, startTracing } from '@etude/platform/tracing';
import { AgentSettingsStore, installationSettings } from '@etude/queue/agents/agent-settings-store';
import { RedisToolSessions, ToolCalls } from '@etude/queue/agents/tool-sessions';
import { WantedSkills, wishesOf } from '@etude/queue/agents/wanted-skills';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { AuditLog } from '@etude/queue/audit/audit-log';
import { DeadLetters } from '@etude/queue/jobs/dead-letters';
import { Producer } from '@etude/queue/jobs/producer';
import { type Reconciler, startReconciler } from '@etude/queue/reconciler';
import { ConsolidationStore } from '@etude/queue/memory/consolidation-store';
import { RedisMemoryOutbox } from '@etude/queue/memory/memory-outbox';
import { SettlingStore } from '@etude/queue/memory/settling-store';
import { UpkeepStore } from '@etude/queue/memory/upkeep-store';
import { redisRisk } from '@etude/queue/redis/readiness';
import type { QueueLogger } from '@etude/queue/redis/redis';
import { ControllerChannels, ControllerDirectory } from '@etude/queue/sandboxes/controllers';
import { isOfRollout, RouterWorkSandboxes } from '@etude/queue/sandboxes/router-work-sandboxes';
import { SandboxRouter } from '@etude/queue/sandboxes/sandbox-router';
import { SandboxSessionStore } from '@etude/queue/sandboxes/sandbox-sessions';
import { SpendStore, Tenants } from '@etude/queue/spend/spend-store';
import { retentionFrom, TaskStore } from '@etude/queue/tasks/task-store';
import { RedisWorlds } from '@etude/queue/worlds/worlds-store';
import type { INestApplicationContext, OnApplicationShutdown } from '@nestjs/common';
import { createLogger, loggerModule } from '@etude/platform/logging';
import { controllerTls, type ServerTls, serverTls } from '@etude/platform/tls';
import { runService } from '@etude/platform/run-service';
import { agentCalls } from './agents/agent-calls.js';
import { authenticatorFrom } from './calls/caller.js';
import { Calls } from './calls/calls.js';
import { MemoryAccess, rerankersOf } from './calls/memory-access.js';
import { checkAuthentication, type GatewayConfig } from './config/gateway-config.js';
import { HealthReporter, listenForGrpc } from './doors/grpc-server.js';
import { McpServer } from './doors/mcp-server.js';
import { RestServer } from './doors/rest-server.js';
import { consolidationCalls } from './memory/consolidation-calls.js';
import { conversationCalls } from './memory/conversation-calls.js';
import { documentCalls } from './memory/document-calls.js';
import { recordCalls } from './memory/record-calls.js';
import { searchCalls } from './memory/search-calls.js';
import { singleRecordCalls } from './memory/single-record-calls.js';
import { upkeepCalls } from './memory/upkeep-calls.js';
import { type SkillDeps, SkillRegistration } from './registration/skill-registration.js';
import { showInstallation } from './queues/installation-metrics.js';
import { queueCalls } from './queues/queue-calls.js';
import { sandboxCalls } from './sandboxes/sandbox-calls.js';
import { fileCalls } from './skills/file-calls.js';
import { hygieneCalls } from './skills/hygiene-calls.js';
import { readCalls } from './skills/read-calls.js';
import { registryCalls } from './skills/registry-calls.js';
import { reviewCalls } from './skills/review-calls.js';
import { useCalls } from './skills/use-calls.js';
import { taskCalls } from './tasks/task-calls.js';
import { TaskWatcher } from './tasks/task-events.js';
import { SandboxCodeSessions } from './tools/sandbox-code-sessions.js';
import { toolCalls } from './tools/tool-calls.js';
import { toolSkills } from './tools/tool-skills.js';
import { worldCalls } from './worlds/world-calls.js';

const CLOSE_GRACE_MS = 3_000;
/** How long a cluster may take to send new connections elsewhere, once the gateway is not ready. */
const UNROUTED_MS = 5_000;

/** The whole gateway: its handlers behind gRPC, REST and MCP, and the background work. */
class Gateway implements OnApplicationShutdown {
  readonly #producer: Producer;
  readonly #spend: SpendStore;
  readonly #tasks: TaskStore;
  readonly #tenants: Tenants;
  readonly #audit: AuditLog;
  readonly #worlds: RedisWorlds;
  readonly #memory: MemoryAccess;
  readonly #settling: SettlingStore;
  readonly #router: SandboxRouter;
  readonly #workSandboxes: RouterWorkSandboxes;
  readonly #analyser = new RuffSecretlintAnalyser();
  readonly #calls: Calls;
  readonly #health: HealthReporter;
  readonly #rest: RestServer;
  readonly #mcp: McpServer;
  readonly #tls: ServerTls | null;
  readonly #shutdown = new AbortController();
  #grpc: ListeningServer | null = null;
  #reconciler: Reconciler | null = null;

  constructor(
    private readonly config: GatewayConfig,
    embedder: Embedder,
    private readonly logger: QueueLogger,
    private readonly tracing: ProcessTracing,
  ) {
    const log = (message: string, details: object) => logger.warn(details, message);
    this.#producer = new Producer(config.ETUDE_REDIS_URL, config.ETUDE_QUEUE_PREFIX, logger, { tracing });
    const { redis, keys } = this.#producer;
    this.#spend = new SpendStore(this.#producer, config);
    const { limitsOf } = this.#spend;
    this.#tasks = new TaskStore(this.#producer, retentionFrom(config), limitsOf);
    this.#tenants = new Tenants(this.#producer, this.#spend, limitsOf);
    this.#worlds = new RedisWorlds(redis, keys);
    const checker = fileProofChecker(config.ETUDE_SKILLS_PUBLIC_KEYS_PATH, (error) =>
      logger.error({ err: error }, 'The file of public keys is wrong. Its last valid keys stay in use'),
    );
    this.#settling = new SettlingStore(this.#producer);
    const onUnsettled = (tenant: string) => this.#settling.request(tenant);
    this.#memory = new MemoryAccess(() =>
      memoryFrom(config, { embedder, proofChecker: checker, ...rerankersOf(config, log, tracing), log, onUnsettled }),
    );
    const sessions = new SandboxSessionStore(redis, keys);
    const token = config.ETUDE_SANDBOX_INTERNAL_TOKEN;
    const channels = token === undefined ? null : new ControllerChannels(token, controllerTls(config));
    const routed = { sessions, directory: new ControllerDirectory(redis, keys), channels, tracing };
    this.#router = new SandboxRouter({ ...routed, hides: isOfRollout });
    this.#workSandboxes = new RouterWorkSandboxes(new SandboxRouter(routed));
    this.#audit = new AuditLog(this.#producer, config);
    const authenticator = authenticatorFrom(config, logger, this.#audit);
    const perTenantMax = config.ETUDE_CALLS_PER_TENANT_MAX;
    const onRefused = (tenant: string) => void this.#tenants.countRefusal(tenant).catch(() => undefined);
    this.#calls = new Calls({
      authenticator,
      shutdown: this.#shutdown.signal,
      perTenantMax,
      onRefused,
      log: logger,
      tracing,
      audit: this.#audit,
    });
    const skills = this.#skillDeps(checker);
    this.#serve(skills, sessions, this.#tools(skills, sessions, embedder));
    this.#health = new HealthReporter(this.checks.redis, this.checks.memory);
    const tls = serverTls(config, (error) => logger.error({ err: error }, 'The TLS files are wrong. The last valid ones stay in use'));
    this.#tls = tls;
    this.#rest = new RestServer({ calls: this.#calls, authenticator, provider: config.ETUDE_REST_PROVIDER, tls });
    this.#mcp = new McpServer(config, { calls: this.#calls, authenticator, log, tls });
  }

  readonly checks = {
    redis: () => redisRisk(this.#producer),
    memory: () => this.#memory.check(),
  };

  #skillDeps(checker: SkillDeps['checker']): SkillDeps {
    const config = this.config;
    const producer = this.#producer;
    const { redis, keys } = producer;
    const settings = new AgentSettingsStore(redis, keys, installationSettings(config));
    const sandboxes = new QueueSandboxes(producer);
    const templateFor = templatesOf(readSandboxPackages(config.ETUDE_SANDBOX_PACKAGES_PATH));
    const wanted = new WantedSkills(producer, config.ETUDE_SKILLS_WISHES_OPEN_MAX);
    return {
      memory: this.#memory,
      sandboxes,
      templateFor,
      settings,
      outbox: maskedOutbox(new RedisMemoryOutbox(producer)),
      checker,
      analyser: this.#analyser,
      clock: { now: Date.now },
      mutationScoreMin: config.ETUDE_SKILLS_MUTATION_SCORE_MIN,
      registration: new SkillRegistration({ sandboxes, settings, producer, templateFor }),
      wanted,
      wishes: maskedWishes(wishesOf(wanted)),
      toolCalls: new ToolCalls(redis, keys),
    };
  }

  /** The agents' tools, over the gateway's memory, sandboxes and queues. */
  #tools(skills: SkillDeps, sandboxes: SandboxSessionStore, embedder: Embedder): ToolRegistry {
    const { redis, keys } = this.#producer;
    const { ETUDE_TOOLS_SANDBOXES_OPEN_MAX: openMax, ETUDE_REST_PROVIDER: provider } = this.config;
    const sessions = new RedisToolSessions(redis, keys);
    const deps: AgentToolsDeps = {
      embedder,
      memory: {
        memory: () => skills.memory.open(),
        outbox: skills.outbox,
        clock: { now: Date.now },
        provenance: async () => ({ source: 'told', episodes: [] }),
      },
      sandboxes: skills.sandboxes,
      ...toolSkills(skills),
      wishes: skills.wishes,
      sessions,
      codeSessions: new SandboxCodeSessions({ router: this.#router, sandboxes, sessions, openMax }),
      skillPath: (tenant, name) => `/instances/${tenant}/providers/${provider}/skills/${name}`,
    };
    return agentTools(
      deps,
      worldTools(this.#worlds, () => null),
    );
  }

  /** Registers the handlers of all calls. A method without a handler fails the start. */
  #serve(skills: SkillDeps, sessions: SandboxSessionStore, registry: ToolRegistry): void {
    const calls = this.#calls;
    const producer = this.#producer;
    const memory = { ...skills, upkeep: new UpkeepStore(producer), settling: this.#settling };
    const tasks = this.#tasks;
    const taskDeps = { ...skills, spend: this.#spend, tasks, worlds: this.#worlds, workSandboxes: this.#workSandboxes, producer };
    calls.serve(SERVICES.tasks, taskCalls, { ...taskDeps, watcher: new TaskWatcher(tasks, producer) });
    for (const handlers of [readCalls, registryCalls, useCalls, fileCalls, reviewCalls, hygieneCalls])
      calls.serve(SERVICES.skills, handlers, skills);
    for (const handlers of [searchCalls, recordCalls, documentCalls, conversationCalls, singleRecordCalls, upkeepCalls])
      calls.serve(SERVICES.memory, handlers, memory);
    calls.serve(SERVICES.consolidation, consolidationCalls, { ...skills, runs: new ConsolidationStore(producer) });
    const dead = new DeadLetters(producer, tasks, skills.wanted);
    showInstallation({ dead, tenants: this.#tenants, memory: this.#memory });
    const directory = new ControllerDirectory(producer.redis, producer.keys);
    calls.serve(SERVICES.queues, queueCalls, { dead, directory, tenants: this.#tenants, audit: this.#audit });
    calls.serve(SERVICES.sandboxes, sandboxCalls, { sessions, router: this.#router });
    calls.serve(SERVICES.agents, agentCalls, skills);
    calls.serve(SERVICES.tools, toolCalls, { ...skills, registry });
    calls.serve(SERVICES.worlds, worldCalls, { ...skills, worlds: this.#worlds });
  }

  /** @throws EtudeError FAILED_PRECONDITION if a port is taken; MEMORY_VERSION */
  async listen(): Promise<void> {
    const { config, logger } = this;
    await this.#memory.openAtStart();
    const { ETUDE_RECONCILER_INTERVAL_MS: intervalMs, ETUDE_DEAD_LETTER_RETENTION_DAYS: days } = config;
    const deadKeptMs = days * 86_400_000;
    this.#reconciler = startReconciler({ producer: this.#producer, tasks: this.#tasks, intervalMs, deadKeptMs, logger });
    void this.#health.start();
    this.#grpc = await listenForGrpc(config.ETUDE_GRPC_HOST, config.ETUDE_GRPC_PORT, {
      calls: this.#calls,
      tls: this.#tls,
      health: this.#health,
      onMistake: (method, errorId, error) => logger.error({ method, errorId, err: error }, 'A call failed outside of its handler'),
    });
    if (config.ETUDE_REST_PORT > 0) await this.#rest.listen(config.ETUDE_REST_HOST, config.ETUDE_REST_PORT);
    if (config.ETUDE_MCP_PORT > 0) await this.#mcp.listen(config.ETUDE_MCP_HOST, config.ETUDE_MCP_PORT);
  }

  /** Ends watches and waits with SHUTTING_DOWN, and gives other calls a grace period. Connections to stores close last. */
  async onApplicationShutdown(): Promise<void> {
    this.#health.close();
    const message = 'This gateway is shutting down. Call again; continue a watch with its last resume_token.';
    this.#shutdown.abort(new EtudeError('SHUTTING_DOWN', message, { retryAfterMs: 500 }));
    await Promise.all([this.#grpc?.close(CLOSE_GRACE_MS), this.#rest.close(), this.#mcp.close()]);
    this.#router.close();
    this.#tls?.close();
    await this.#analyser.close();
    await this.#reconciler?.close();
    await this.#memory.close();
    await this.#producer.close();
    await this.tracing.close();
  }
}

class GatewayModule {}

/**
 * Starts the gateway. It also starts without Redis: then it reports NOT_SERVING and answers UNAVAILABLE until Redis is reachable.
 *
 * @throws EtudeError FAILED_PRECONDITION if a port is taken, nobody could call, or a key file is wrong; MEMORY_VERSION
 */
export async function startGateway(
  config: GatewayConfig,
  embedderOf: (tracing: Tracing, warn: (message: string) => void) => Promise<Embedder>,
): Promise<INestApplicationContext> {
  checkAuthentication(config);
  const logger = createLogger('gateway', config);
  const tracing = await startTracing('gateway', config, logger);
  const embedder = await embedderOf(tracing, (message) => logger.warn({}, message));
  const gateway = new Gateway(config, embedder, logger, tracing);
  const { ETUDE_GRPC_HOST: grpcHost, ETUDE_GRPC_PORT: grpcPort, ETUDE_REST_PORT: restPort, ETUDE_MCP_PORT: mcpPort } = config;
  return runService({
    name: 'gateway',
    module: {
      module: GatewayModule,
      imports: [loggerModule('gateway', config)],
      providers: [{ provide: Gateway, useValue: gateway }],
    },
    config,
    checks: gateway.checks,
    listen: () => gateway.listen(),
    drain: () => sleep(Math.min(UNROUTED_MS, config.ETUDE_DRAIN_MS)),
    ready: () => ({ grpcHost, grpcPort, ...(restPort > 0 ? { restPort } : {}), ...(mcpPort > 0 ? { mcpPort } : {}) }),
  });
}
