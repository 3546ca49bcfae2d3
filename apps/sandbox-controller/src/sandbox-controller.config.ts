import { availableParallelism } from 'node:os';
import { EtudeError } from '@etude/contracts/errors';
import { baseConfig, list } from '@etude/platform/config';
import { tlsConfig } from '@etude/platform/tls';
import { tenantLimitsConfig } from '@etude/queue/limits/tenant-limits';
import { readHostUserRange } from '@etude/sandbox/host-users';
import type { LocalOptions } from '@etude/sandbox/local-driver';
import { z } from 'zod';

const count = (max: number) => z.coerce.number().int().min(1).max(max);

/** Settings of the drivers that run sandboxes. */
const driverConfig = {
  /** Driver of sandboxes: local processes under bubblewrap, or pods. */
  ETUDE_SANDBOX_DRIVER: z.enum(['local', 'kubernetes']).default('local'),
  /** `local`: number of sandboxes kept ready. For pods, templates set this number. */
  ETUDE_SANDBOX_WARM: z.coerce.number().int().min(0).max(1_000).default(2),
  /** `local`: names of limits (controls) that sandboxes may lack on this machine. */
  ETUDE_SANDBOX_ALLOW_MISSING: list.default([]),
  /** `local`: folder with one subfolder of packages per additional template, named after it. Unset: only the template "default". */
  ETUDE_SANDBOX_OVERLAYS_PATH: z.string().min(1).optional(),
  /**
   * `local`: range of user and group ids for sandboxes, as FIRST:COUNT. A controller takes 1,024 of them. Unset: 2000000000:65536 for root,
   * and for other users their range in /etc/subuid.
   */
  ETUDE_SANDBOX_UIDS: z
    .string()
    .transform(readHostUserRange)
    .refine((range) => range !== undefined, 'must be the first id and the number of ids, such as "2000000000:65536"')
    .optional(),
  /** `kubernetes`: the namespace that holds the pods and nothing else. */
  ETUDE_SANDBOX_NAMESPACE: z.string().min(1).optional(),
  /** `kubernetes`, outside a cluster: kubeconfig file whose current context is used. */
  ETUDE_SANDBOX_KUBECONFIG_PATH: z.string().min(1).optional(),
  /** `kubernetes`: YAML or JSON file of templates by name, one of them "default". */
  ETUDE_SANDBOX_TEMPLATES_PATH: z.string().min(1).optional(),
  /** `kubernetes`: secret from which the tokens of pods are made. All controllers of a namespace need the same secret. */
  ETUDE_SANDBOX_TOKEN_SECRET: z.string().min(32, 'must have at least 32 characters').optional(),
  /** `kubernetes`: name that distinguishes the pods of several installations in one namespace. */
  ETUDE_SANDBOX_INSTALLATION: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$/, 'must be 1 to 20 lower-case letters, digits and "-"')
    .default('etude'),
};

/** Sessions for callers. Without a token the controller serves none. */
const sessionConfig = {
  /** Secret that gateways, rollout workers and sandbox controllers share. Unset: no sandbox sessions. */
  ETUDE_SANDBOX_INTERNAL_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
  /** Address that the controller listens on for gateways. */
  ETUDE_SANDBOX_GRPC_HOST: z.string().min(1).default('127.0.0.1'),
  /** Port that the controller listens on for gateways. 0: any free port. */
  ETUDE_SANDBOX_GRPC_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  /** "host" or "host:port" at which gateways reach this controller. Unset: ETUDE_SANDBOX_GRPC_HOST and the port. */
  ETUDE_SANDBOX_ADVERTISED_ADDRESS: z.string().min(1).optional(),
  /** Most open sessions in this controller. */
  ETUDE_SANDBOX_SESSIONS_MAX: count(10_000).default(32),
};

export const sandboxControllerConfig = baseConfig
  .extend(tlsConfig.shape)
  .extend(tenantLimitsConfig.shape)
  .extend({
    /** Most concurrent executions in this process. */
    ETUDE_SANDBOX_CONCURRENCY: count(1_000).default(() => Math.min(32, 2 * availableParallelism())),
    ...driverConfig,
    ...sessionConfig,
  });
export type SandboxControllerConfig = z.infer<typeof sandboxControllerConfig>;

export const localOptions = (config: SandboxControllerConfig): LocalOptions => ({
  warm: config.ETUDE_SANDBOX_WARM,
  allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
  overlaysPath: config.ETUDE_SANDBOX_OVERLAYS_PATH,
  userRange: config.ETUDE_SANDBOX_UIDS,
});

/** The value of a setting that the chosen driver needs. @throws EtudeError FAILED_PRECONDITION if the setting is missing */
export function needed<K extends keyof SandboxControllerConfig>(
  config: SandboxControllerConfig,
  name: K,
): NonNullable<SandboxControllerConfig[K]> {
  const value = config[name];
  if (value !== undefined && value !== null) return value;
  const message = `ETUDE_SANDBOX_DRIVER=${config.ETUDE_SANDBOX_DRIVER} needs the setting ${name}, which is not set.`;
  throw new EtudeError('FAILED_PRECONDITION', message);
}
