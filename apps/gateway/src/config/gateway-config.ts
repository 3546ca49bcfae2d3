import { isIP } from 'node:net';
import { EtudeError } from '@etude/contracts/errors';
import { TenantId } from '@etude/contracts/ids';
import { memoryConfig, requireMemory } from '@etude/memory/memory-config';
import { modelConfig } from '@etude/model/model-config';
import { baseConfig } from '@etude/platform/config';
import { publicKeysConfig } from '@etude/platform/proof-keys';
import { sandboxPackagesConfig } from '@etude/platform/sandbox-packages';
import { agentSettingsConfig } from '@etude/queue/agents/agent-settings-config';
import { taskConfig } from '@etude/queue/tasks/task-store';
import { OPEN_MAX } from '@etude/queue/agents/wanted-skills';
import { z } from 'zod';

/** "a, b" as a list; nothing is an empty one. */
const names = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );

const mcpConfig = z.object({
  /** MCP over streamable HTTP, at /mcp; 0: none. */
  ETUDE_MCP_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  ETUDE_MCP_HOST: z.string().min(1).default('127.0.0.1'),
  /** Names that clients may call it by, without ports, besides those of loopback; on other addresses, where none is named, any. */
  ETUDE_MCP_ALLOWED_HOSTS: names,
  /** Origins of websites whose requests are answered, such as "https://console.example.org". */
  ETUDE_MCP_ALLOWED_ORIGINS: names,
});

export const gatewayConfig = requireMemory(
  baseConfig
    .extend(modelConfig.shape)
    .extend(memoryConfig.shape)
    .extend(mcpConfig.shape)
    .extend(agentSettingsConfig.shape)
    .extend(taskConfig.shape)
    .extend(publicKeysConfig.shape)
    .extend(sandboxPackagesConfig.shape)
    .extend({
      ETUDE_GRPC_HOST: z.string().min(1).default('127.0.0.1'),
      ETUDE_GRPC_PORT: z.coerce.number().int().min(1).max(65_535).default(50_051),
      /** JSON over HTTP beside gRPC; 0: none. */
      ETUDE_REST_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
      ETUDE_REST_HOST: z.string().min(1).default('127.0.0.1'),
      /** `{provider}` in the paths of skills as resources. */
      ETUDE_REST_PROVIDER: z
        .string()
        .max(100)
        .regex(/^[A-Za-z0-9]+(\.[A-Za-z0-9]+)*$/, 'must be names of letters and digits with dots between them, such as "Etude.Skill"')
        .default('Etude.Skill'),
      /** Share of the mutants of a skill that its tests have to notice, as the consolidation worker has it; `CheckSkill` says by it. */
      ETUDE_SKILLS_MUTATION_SCORE_MIN: z.coerce.number().min(0).max(1).default(0.5),
      /** Missed skills of one agent that wait to be written; more are not taken. */
      ETUDE_SKILLS_WISHES_OPEN_MAX: z.coerce.number().int().min(0).max(100_000).default(OPEN_MAX),
      /** JSON file of hashed API keys; read again when it changes. */
      ETUDE_AUTH_KEYS_PATH: z.string().min(1).optional(),
      /** Tenant of calls without a key. On loopback only. */
      ETUDE_AUTH_ANONYMOUS_TENANT: TenantId.optional(),
      /** Calls of one tenant that this process works on at once; waits and streams are not counted. */
      ETUDE_CALLS_PER_TENANT_MAX: z.coerce.number().int().min(1).max(100_000).default(500),
      /** What gateways and sandbox controllers know each other by; unset: no sandboxes for callers. */
      ETUDE_SANDBOX_INTERNAL_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
      /** Open sandboxes of a tenant, whoever opened them, beyond which sessions of tools open no other; 0: never. */
      ETUDE_TOOLS_SANDBOXES_OPEN_MAX: z.coerce.number().int().min(0).max(100_000).default(8),
      /** How often accepted tasks without a job, and tasks whose job is dead, are looked for. */
      ETUDE_RECONCILER_INTERVAL_MS: z.coerce.number().int().min(100).max(3_600_000).default(2_000),
    }),
);
export type GatewayConfig = z.infer<typeof gatewayConfig>;

/** Whether only this machine can reach a server bound to `host`. Names other than localhost could resolve to anything. */
export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/** @throws EtudeError FAILED_PRECONDITION where nobody could call, or everybody could */
export function checkAuthentication(config: GatewayConfig): void {
  const { ETUDE_AUTH_KEYS_PATH: keys, ETUDE_AUTH_ANONYMOUS_TENANT: anonymous, ETUDE_GRPC_HOST: host } = config;
  if (keys === undefined && anonymous === undefined) {
    throw new EtudeError(
      'FAILED_PRECONDITION',
      'No caller could be authenticated. Set ETUDE_AUTH_KEYS_PATH to a file of API keys, or, for a server that only this machine reaches, ETUDE_AUTH_ANONYMOUS_TENANT to the tenant of calls without a key.',
    );
  }
  if (anonymous !== undefined && !isLoopback(host)) {
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `ETUDE_AUTH_ANONYMOUS_TENANT lets anybody in who reaches ${host}. Set ETUDE_GRPC_HOST to 127.0.0.1, or unset ETUDE_AUTH_ANONYMOUS_TENANT and give callers keys with ETUDE_AUTH_KEYS_PATH.`,
    );
  }
}
