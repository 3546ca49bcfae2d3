import { errorCode, isAbort } from '@etude/contracts/errors';
import type { HealthCheck } from '@etude/platform/health';
import { counter, gauge, histogram } from '@etude/platform/metrics';
import { readSandboxPackages } from '@etude/platform/sandbox-packages';
import type { QueueLogger } from '@etude/queue/redis/redis';
import type { ClaimedSandbox, SandboxDriver, SandboxShape } from '@etude/sandbox/sandbox-driver';
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
  const { startLocalDriver } = await import('@etude/sandbox/local-driver');
  const driver = await startLocalDriver({
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

const claims = counter({ name: 'etude_sandbox_claims_total', help: 'Claims of a sandbox, by outcome', labels: ['outcome'] });
const seconds = histogram({ name: 'etude_sandbox_claim_seconds', help: 'How long claims took until there was a sandbox' });

/** A driver whose claims are counted and timed. */
export class MeasuredDriver implements SandboxDriver {
  #waiting = 0;

  /** @param free sandboxes that are ready for a claim at this moment */
  constructor(
    private readonly driver: SandboxDriver,
    free: () => number,
  ) {
    gauge({ name: 'etude_sandbox_warm', help: 'Sandboxes that are ready for a claim', collect: free });
    gauge({ name: 'etude_sandbox_claims_waiting', help: 'Claims that wait until a sandbox is free', collect: () => this.#waiting });
  }

  async claim(shape: SandboxShape, signal: AbortSignal, onQueued?: (before: number) => void): Promise<ClaimedSandbox> {
    let waits = 0;
    const queued = (before: number) => {
      this.#waiting += 1 - waits;
      waits = 1;
      onQueued?.(before);
    };
    const stop = seconds.startTimer();
    let outcome = 'ok';
    try {
      const claimed = await this.driver.claim(shape, signal, queued);
      stop();
      return claimed;
    } catch (error) {
      outcome = isAbort(error) || signal.aborted ? 'cancelled' : errorCode(error).toLowerCase();
      throw error;
    } finally {
      this.#waiting -= waits;
      claims.inc({ outcome });
    }
  }

  attach(place: string, signal: AbortSignal): Promise<ClaimedSandbox> {
    return this.driver.attach(place, signal);
  }

  close(): Promise<void> {
    return this.driver.close();
  }
}
