import { setTimeout as sleep } from 'node:timers/promises';
import { maskedOutbox, maskedWishes } from '@etude/analysis/masked';
import { RuffSecretlintAnalyser } from '@etude/analysis/static-analyser';
import { EtudeError } from '@etude/contracts/errors';
import { SERVICES } from '@etude/contracts/grpc';
import type { ListeningServer } from '@etude/contracts/grpc-server';
import type { Embedder } from '@etude/domain/ports/model';
import { agentTools, ToolRegistry } from '@etude/domain/tools/agent-tools';
import type { RememberDeps } from '@etude/domain/tools/memory-tools';
import { worldTools } from '@etude/domain/tools/world-tools';
import { templatesOf } from '@etude/domain/skills/life/skill-packages';
import { memoryFrom } from '@etude/memory/open-memory';
import { fileProofChecker } from '@etude/platform/proof-keys';
import { readSandboxPackages } from '@etude/platform/config';
import type { Tracing } from '@etude/contracts/tracing';
import { startTracing } from '@etude/platform/tracing';
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
import type { INestApplicationContext } from '@nestjs/common';
import { createLogger } from '@etude/platform/logging';
import { controllerTls, serverTls } from '@etude/platform/tls';
import { runService } from '@etude/platform/run-service';
import { agentCalls } from './agents/agent-calls.js';
import { authenticatorFrom } from './calls/caller.js';
import { Calls } from './calls/calls.js';
import { MemoryAccess, rerankersOf } from './calls/memory-access.js';
import { checkAuthentication, type GatewayConfig } from './config/gateway-config.js';
import { healthReporter, listenForGrpc } from './doors/grpc-server.js';
import { mcpDoor } from './doors/mcp-server.js';
import { restDoor } from './doors/rest-server.js';
import { consolidationCalls } from './memory/consolidation-calls.js';
import { conversationCalls } from './memory/conversation-calls.js';
import { documentCalls } from './memory/document-calls.js';
import { recordCalls } from './memory/record-calls.js';
import { searchCalls } from './memory/search-calls.js';
import { singleRecordCalls } from './memory/single-record-calls.js';
import { upkeepCalls } from './memory/upkeep-calls.js';
import { SkillRegistration } from './registration/skill-registration.js';
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
import { SandboxCodeSessions } from './tools/sandbox-code-sessions.js';
import { toolCalls } from './tools/tool-calls.js';
import { toolSkills } from './tools/tool-skills.js';
import { worldCalls } from './worlds/world-calls.js';

const CLOSE_GRACE_MS = 3_000;
/** How long a cluster may still send new connections to a gateway that is no longer ready. */
const UNROUTED_MS = 5_000;

type Parts = ReturnType<typeof partsFrom>;

function partsFrom(config: GatewayConfig, embedder: Embedder, logger: QueueLogger, tracing: Tracing) {
  const producer = new Producer(config.ETUDE_REDIS_URL, config.ETUDE_QUEUE_PREFIX, logger, { tracing });
  const { redis, keys } = producer;
  const log = (message: string, details: object) => logger.warn(details, message);
  const checker = fileProofChecker(config.ETUDE_SKILLS_PUBLIC_KEYS_PATH, (error) =>
    logger.error({ err: error }, 'The file of public keys is wrong. Its last valid keys stay in use'),
  );
  const settling = new SettlingStore(producer);
  const onUnsettled = (tenant: string) => settling.request(tenant);
  const memory = new MemoryAccess(() =>
    memoryFrom(config, { embedder, proofChecker: checker, ...rerankersOf(config, log, tracing), log, onUnsettled }),
  );
  const token = config.ETUDE_SANDBOX_INTERNAL_TOKEN;
  const channels = token === undefined ? null : new ControllerChannels(token, controllerTls(config));
  const sessions = new SandboxSessionStore(redis, keys);
  const directory = new ControllerDirectory(redis, keys);
  const routed = { sessions, directory, channels, tracing };
  const settings = new AgentSettingsStore(redis, keys, installationSettings(config));
  const sandboxes = new QueueSandboxes(producer);
  const templateFor = templatesOf(readSandboxPackages(config.ETUDE_SANDBOX_PACKAGES_PATH));
  const wanted = new WantedSkills(producer, config.ETUDE_SKILLS_WISHES_OPEN_MAX);
  const spend = new SpendStore(producer, config);
  const tasks = new TaskStore(producer, retentionFrom(config), spend.limitsOf);
  return {
    producer,
    checker,
    settling,
    memory,
    sessions,
    directory,
    router: new SandboxRouter({ ...routed, hides: isOfRollout }),
    workSandboxes: new RouterWorkSandboxes(new SandboxRouter(routed)),
    settings,
    sandboxes,
    templateFor,
    wanted,
    wishes: maskedWishes(wishesOf(wanted)),
    outbox: maskedOutbox(new RedisMemoryOutbox(producer)),
    analyser: new RuffSecretlintAnalyser(),
    clock: { now: Date.now },
    mutationScoreMin: config.ETUDE_SKILLS_MUTATION_SCORE_MIN,
    registration: new SkillRegistration({ sandboxes, settings, producer, templateFor }),
    toolCalls: new ToolCalls(redis, keys),
    spend,
    tasks,
    tenants: new Tenants(producer, spend),
    audit: new AuditLog(producer, config),
    worlds: new RedisWorlds(redis, keys),
    upkeep: new UpkeepStore(producer),
    runs: new ConsolidationStore(producer),
    dead: new DeadLetters(producer, tasks, wanted),
  };
}

function toolsOf(parts: Parts, embedder: Embedder, config: GatewayConfig): ToolRegistry {
  const { producer, memory, outbox, clock, sandboxes, wishes, router, sessions: sandboxSessions, worlds } = parts;
  const { ETUDE_TOOLS_SANDBOXES_OPEN_MAX: openMax, ETUDE_REST_PROVIDER: provider } = config;
  const sessions = new RedisToolSessions(producer.redis, producer.keys);
  const code = {
    embedder,
    sandboxes,
    ...toolSkills(parts),
    wishes,
    sessions,
    codeSessions: new SandboxCodeSessions({ router, sandboxes: sandboxSessions, sessions, openMax }),
    skillPath: (tenant: string, name: string) => `/instances/${tenant}/providers/${provider}/skills/${name}`,
  };
  const remember: RememberDeps = { outbox, clock, provenance: async () => ({ source: 'told', episodes: [] }) };
  const tools = agentTools({ code, todos: sessions, skills: code, memory: () => memory.open(), remember });
  return new ToolRegistry(tools, worldTools({ move: worlds.move, world: null }));
}

/** A method without a handler fails the start. */
function serve(calls: Calls, parts: Parts, registry: ToolRegistry): void {
  calls.serve(SERVICES.tasks, taskCalls, parts);
  for (const handlers of [readCalls, registryCalls, useCalls, fileCalls, reviewCalls, hygieneCalls])
    calls.serve(SERVICES.skills, handlers, parts);
  for (const handlers of [searchCalls, recordCalls, documentCalls, conversationCalls, singleRecordCalls, upkeepCalls])
    calls.serve(SERVICES.memory, handlers, parts);
  calls.serve(SERVICES.consolidation, consolidationCalls, parts);
  calls.serve(SERVICES.queues, queueCalls, parts);
  calls.serve(SERVICES.sandboxes, sandboxCalls, parts);
  calls.serve(SERVICES.agents, agentCalls, parts);
  calls.serve(SERVICES.tools, toolCalls, { ...parts, registry });
  calls.serve(SERVICES.worlds, worldCalls, parts);
}

function doorsOf(parts: Parts, registry: ToolRegistry, config: GatewayConfig, logger: QueueLogger, tracing: Tracing) {
  const { producer, memory, tenants, audit } = parts;
  const shutdown = new AbortController();
  const authenticator = authenticatorFrom(config, logger, audit);
  const calls = new Calls({
    authenticator,
    shutdown: shutdown.signal,
    perTenantMax: config.ETUDE_CALLS_PER_TENANT_MAX,
    onRefused: (tenant) => void tenants.countRefusal(tenant).catch(() => undefined),
    log: logger,
    tracing,
    audit,
  });
  serve(calls, parts, registry);
  const checks = { redis: () => redisRisk(producer), memory: () => memory.check() };
  const health = healthReporter(checks.redis, checks.memory);
  const tls = serverTls(config, (error) => logger.error({ err: error }, 'The TLS files are wrong. The last valid files stay in use'));
  const rest = restDoor({ calls, authenticator, provider: config.ETUDE_REST_PROVIDER, tls });
  const mcp = mcpDoor(config, { calls, authenticator, log: (message, details) => logger.warn(details, message), tls });
  let grpc: ListeningServer | undefined;
  return {
    checks,
    /** @throws EtudeError FAILED_PRECONDITION if a port is taken */
    async listen(): Promise<void> {
      void health.start();
      grpc = await listenForGrpc(config.ETUDE_GRPC_HOST, config.ETUDE_GRPC_PORT, {
        calls,
        tls,
        health,
        onMistake: (method, errorId, error) => logger.error({ method, errorId, err: error }, 'A call failed outside of its handler'),
      });
      if (config.ETUDE_REST_PORT > 0) await rest.listen(config.ETUDE_REST_HOST, config.ETUDE_REST_PORT);
      if (config.ETUDE_MCP_PORT > 0) await mcp.listen(config.ETUDE_MCP_HOST, config.ETUDE_MCP_PORT);
    },
    /** Ends watches and waits with SHUTTING_DOWN, and gives other calls a grace period. */
    async close(): Promise<void> {
      health.close();
      const message = 'This gateway is shutting down. Call again; continue a watch with its last resume_token.';
      shutdown.abort(new EtudeError('SHUTTING_DOWN', message, { retryAfterMs: 500 }));
      await Promise.all([grpc?.close(CLOSE_GRACE_MS), rest.close(), mcp.close()]);
      tls?.close();
    },
  };
}

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
  const parts = partsFrom(config, embedder, logger, tracing);
  const { producer, tasks, memory, router, analyser } = parts;
  const doors = doorsOf(parts, toolsOf(parts, embedder, config), config, logger, tracing);
  showInstallation(parts);
  let reconciler: Reconciler | undefined;
  const listen = async () => {
    await memory.openAtStart();
    const { ETUDE_RECONCILER_INTERVAL_MS: intervalMs, ETUDE_DEAD_LETTER_RETENTION_DAYS: days } = config;
    reconciler = startReconciler({ producer, tasks, intervalMs, deadKeptMs: days * 86_400_000, logger });
    await doors.listen();
  };
  const close = async () => {
    await doors.close();
    router.close();
    await analyser.close();
    await reconciler?.close();
    // Connections to stores close last.
    await memory.close();
    await producer.close();
    await tracing.close();
  };
  const { ETUDE_GRPC_HOST: grpcHost, ETUDE_GRPC_PORT: grpcPort, ETUDE_REST_PORT: restPort, ETUDE_MCP_PORT: mcpPort } = config;
  return runService({
    name: 'gateway',
    config,
    logger,
    checks: doors.checks,
    listen,
    close,
    drain: () => sleep(Math.min(UNROUTED_MS, config.ETUDE_DRAIN_MS)),
    ready: () => ({ grpcHost, grpcPort, ...(restPort > 0 ? { restPort } : {}), ...(mcpPort > 0 ? { mcpPort } : {}) }),
  });
}
