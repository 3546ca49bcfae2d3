import { EtudeError } from '@etude/contracts/errors';
import { TenantId } from '@etude/contracts/ids';
import { isLoopback } from '@etude/contracts/outside-tools';
import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { modelConfig } from '@etude/model/model-config';
import { rerankConfig } from '@etude/model/rerank-server';
import { baseConfig, list, sandboxPackagesConfig } from '@etude/platform/config';
import { jwtConfig } from '@etude/platform/jwt';
import { publicKeysConfig } from '@etude/platform/proof-keys';
import { tlsConfig } from '@etude/platform/tls';
import { agentSettingsConfig } from '@etude/queue/agents/agent-settings-store';
import { auditConfig } from '@etude/queue/audit/audit-log';
import { tenantLimitsConfig } from '@etude/queue/limits/tenant-limits';
import { taskConfig } from '@etude/queue/tasks/task-store';
import { OPEN_MAX } from '@etude/queue/agents/wanted-skills';
import { z } from 'zod';

const mcpConfig = z.object({
  /** Port of MCP over streamable HTTP, at /mcp; 0: off. */
  ETUDE_MCP_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** Address that the MCP server listens on. */
  ETUDE_MCP_HOST: z.string().min(1).default('127.0.0.1'),
  /** Host names, without ports, that MCP clients may use. If ETUDE_MCP_HOST is loopback, its names are added. No names at all: any name. */
  ETUDE_MCP_ALLOWED_HOSTS: list.default([]),
  /** Origins of websites that MCP answers, such as "https://console.example.org". */
  ETUDE_MCP_ALLOWED_ORIGINS: list.default([]),
});

export const gatewayConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(rerankConfig.shape)
    .extend(memoryConfig.shape)
    .extend(mcpConfig.shape)
    .extend(agentSettingsConfig.shape)
    .extend(taskConfig.shape)
    .extend(tenantLimitsConfig.shape)
    .extend(publicKeysConfig.shape)
    .extend(jwtConfig.shape)
    .extend(tlsConfig.shape)
    .extend(auditConfig.shape)
    .extend(sandboxPackagesConfig.shape)
    .extend({
      /** Address that the gRPC server listens on. */
      ETUDE_GRPC_HOST: z.string().min(1).default('127.0.0.1'),
      ETUDE_GRPC_PORT: z.coerce.number().int().min(1).max(65_535).default(50_051),
      /** Port of JSON over HTTP; 0: off. */
      ETUDE_REST_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
      /** Address that the REST server listens on. */
      ETUDE_REST_HOST: z.string().min(1).default('127.0.0.1'),
      /** The `{provider}` in REST paths of skill resources. */
      ETUDE_REST_PROVIDER: z
        .string()
        .max(100)
        .regex(/^[A-Za-z0-9]+(\.[A-Za-z0-9]+)*$/, 'must be names of letters and digits with dots between them, such as "Etude.Skill"')
        .default('Etude.Skill'),
      /** Share of a skill's mutants (deliberately broken copies) that its tests must detect. Gateway and consolidation worker need the same value. */
      ETUDE_SKILLS_MUTATION_SCORE_MIN: z.coerce.number().min(0).max(1).default(0.5),
      /** Days for which dead letters are kept. A memory write that was never applied is tried again afterwards. */
      ETUDE_DEAD_LETTER_RETENTION_DAYS: z.coerce.number().min(0.01).max(3_650).default(30),
      /** Most open skill requests per agent. */
      ETUDE_SKILLS_WISHES_OPEN_MAX: z.coerce.number().int().min(0).max(100_000).default(OPEN_MAX),
      /** JSON file of hashed API keys, read again when it changes. */
      ETUDE_AUTH_KEYS_PATH: z.string().min(1).optional(),
      /** Tenant of calls without a key. Allowed on loopback only. */
      ETUDE_AUTH_ANONYMOUS_TENANT: TenantId.optional(),
      /** Most concurrent calls of one tenant in this process. Waiting calls and streams don't count. */
      ETUDE_CALLS_PER_TENANT_MAX: z.coerce.number().int().min(1).max(100_000).default(500),
      /** Shared secret of gateways, rollout workers and sandbox controllers; unset: no sandboxes for callers. */
      ETUDE_SANDBOX_INTERNAL_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
      /** Tools open no more sandboxes once the tenant has this many open, including those of callers. 0: tools open none. */
      ETUDE_TOOLS_SANDBOXES_OPEN_MAX: z.coerce.number().int().min(0).max(100_000).default(8),
      /** Interval, in ms, at which the reconciler searches for tasks that have lost their job. */
      ETUDE_RECONCILER_INTERVAL_MS: z.coerce.number().int().min(100).max(3_600_000).default(2_000),
    }),
);
export type GatewayConfig = z.infer<typeof gatewayConfig>;

/** Refuses settings with which nobody could call, or anybody on the network. @throws EtudeError FAILED_PRECONDITION */
export function checkAuthentication(config: GatewayConfig): void {
  const { ETUDE_AUTH_KEYS_PATH: keys, ETUDE_AUTH_ANONYMOUS_TENANT: anonymous, ETUDE_GRPC_HOST: host, ETUDE_JWT_ISSUER: issuer } = config;
  if (keys === undefined && anonymous === undefined && issuer === undefined) {
    const message =
      'No caller could be authenticated. Set ETUDE_AUTH_KEYS_PATH to a file of API keys, or ETUDE_JWT_ISSUER to the issuer of JWTs, or, for a server that only this machine reaches, ETUDE_AUTH_ANONYMOUS_TENANT to the tenant of calls without a key.';
    throw new EtudeError('FAILED_PRECONDITION', message);
  }
  if (anonymous !== undefined && !isLoopback(host)) {
    const message = `ETUDE_AUTH_ANONYMOUS_TENANT would let in anybody who reaches ${host}. Set ETUDE_GRPC_HOST to 127.0.0.1, or unset ETUDE_AUTH_ANONYMOUS_TENANT and give callers keys with ETUDE_AUTH_KEYS_PATH.`;
    throw new EtudeError('FAILED_PRECONDITION', message);
  }
}
