import type { HealthCheck } from '@etude/platform/health';
import { readSandboxPackages } from '@etude/platform/sandbox-packages';
import type { QueueLogger } from '@etude/queue/redis/redis';
import type { SandboxDriver } from '@etude/sandbox/sandbox-driver';
import { needed, type SandboxControllerConfig } from './sandbox-controller.config.js';

/** How long the first sight of the cluster may take. */
const START_TIMEOUT_MS = 60_000;

/** What a controller needs of a logger; pino's shape. */
export interface ControllerLogger extends QueueLogger {
  debug(details: object, message: string): void;
}

export interface StartedDriver {
  readonly driver: SandboxDriver;
  /** Sandboxes that are ready for a claim at this moment. */
  free(): number;
  readonly check: HealthCheck;
}

/**
 * The driver of the settings. Only that one's code is loaded: the client of Kubernetes costs memory that a local stack has no use for.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING, SANDBOX_UNAVAILABLE, FAILED_PRECONDITION or INVALID_ARGUMENT for settings
 */
export function startDriver(config: SandboxControllerConfig, logger: ControllerLogger): Promise<StartedDriver> {
  return config.ETUDE_SANDBOX_DRIVER === 'kubernetes' ? startKubernetes(config, logger) : startLocal(config);
}

async function startLocal(config: SandboxControllerConfig): Promise<StartedDriver> {
  const { LocalSandboxes } = await import('@etude/sandbox/local-sandboxes');
  const { driver } = await LocalSandboxes.start({
    warm: config.ETUDE_SANDBOX_WARM,
    allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
    overlaysPath: config.ETUDE_SANDBOX_OVERLAYS_PATH,
    packages: readSandboxPackages(config.ETUDE_SANDBOX_PACKAGES_PATH),
  });
  return { driver, free: () => driver.warmCount, check: () => Promise.resolve() };
}

async function startKubernetes(config: SandboxControllerConfig, logger: ControllerLogger): Promise<StartedDriver> {
  const [{ KubernetesDriver }, { readTemplates }] = await Promise.all([
    import('@etude/sandbox/kubernetes/kubernetes-driver'),
    import('@etude/sandbox/kubernetes/sandbox-template'),
  ]);
  const driver = await KubernetesDriver.start(
    {
      installation: config.ETUDE_SANDBOX_INSTALLATION,
      tokenSecret: needed(config, 'ETUDE_SANDBOX_TOKEN_SECRET'),
      templates: await readTemplates(needed(config, 'ETUDE_SANDBOX_TEMPLATES_PATH')),
      allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
      logger,
    },
    {
      namespace: needed(config, 'ETUDE_SANDBOX_NAMESPACE'),
      kubeconfigPath: config.ETUDE_SANDBOX_KUBECONFIG_PATH,
      context: config.ETUDE_SANDBOX_KUBECONFIG_CONTEXT,
    },
    AbortSignal.timeout(START_TIMEOUT_MS),
  );
  const free = () => Object.values(driver.figures()).reduce((sum, pool) => sum + pool.free, 0);
  return { driver, free, check: async () => driver.check() };
}
