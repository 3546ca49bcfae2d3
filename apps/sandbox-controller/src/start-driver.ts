import { errorCode, isAbort } from '@etude/contracts/errors';
import { counter, gauge, histogram } from '@etude/platform/metrics';
import type { QueueLogger } from '@etude/queue/redis/redis';
import type { ClaimedSandbox, SandboxDriver, SandboxShape } from '@etude/sandbox/sandbox-driver';
import { needed, type SandboxControllerConfig } from './sandbox-controller.config.js';

/** How long the first list of the cluster's pods may take. */
const START_TIMEOUT_MS = 60_000;

/**
 * Starts the configured driver and measures its claims. Loads only that driver's code: the Kubernetes client would cost a local stack
 * memory for nothing.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING, SANDBOX_UNAVAILABLE, FAILED_PRECONDITION or INVALID_ARGUMENT for settings
 */
export async function startDriver(config: SandboxControllerConfig, logger: QueueLogger): Promise<SandboxDriver> {
  return measured(await (config.ETUDE_SANDBOX_DRIVER === 'kubernetes' ? startKubernetes(config, logger) : startLocal(config)));
}

/** @throws EtudeError as `startDriver` */
export async function startLocal(config: SandboxControllerConfig): Promise<SandboxDriver> {
  const { startLocalDriver } = await import('@etude/sandbox/local-driver');
  return startLocalDriver({
    warm: config.ETUDE_SANDBOX_WARM,
    allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
    overlaysPath: config.ETUDE_SANDBOX_OVERLAYS_PATH,
    userRange: config.ETUDE_SANDBOX_UIDS,
  });
}

async function startKubernetes(config: SandboxControllerConfig, logger: QueueLogger): Promise<SandboxDriver> {
  const [{ KubernetesDriver }, { readTemplates }] = await Promise.all([
    import('@etude/sandbox/kubernetes/kubernetes-driver'),
    import('@etude/sandbox/kubernetes/sandbox-template'),
  ]);
  return KubernetesDriver.start(
    {
      installation: config.ETUDE_SANDBOX_INSTALLATION,
      tokenSecret: needed(config, 'ETUDE_SANDBOX_TOKEN_SECRET'),
      templates: await readTemplates(needed(config, 'ETUDE_SANDBOX_TEMPLATES_PATH')),
      allowMissingControls: config.ETUDE_SANDBOX_ALLOW_MISSING,
      logger,
    },
    { namespace: needed(config, 'ETUDE_SANDBOX_NAMESPACE'), kubeconfigPath: config.ETUDE_SANDBOX_KUBECONFIG_PATH },
    AbortSignal.timeout(START_TIMEOUT_MS),
  );
}

const claims = counter({ name: 'etude_sandbox_claims_total', help: 'Claims of a sandbox, by outcome', labels: ['outcome'] });
const seconds = histogram({ name: 'etude_sandbox_claim_seconds', help: 'How long claims took until there was a sandbox' });

function measured(driver: SandboxDriver): SandboxDriver {
  gauge({ name: 'etude_sandbox_warm', help: 'Sandboxes that are ready for a claim', collect: () => driver.counts().free });
  const waiting = () => driver.counts().waiting;
  gauge({ name: 'etude_sandbox_claims_waiting', help: 'Claims that wait until a sandbox is free', collect: waiting });
  const claim = driver.claim.bind(driver);
  return Object.assign(driver, {
    async claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox> {
      const stop = seconds.startTimer();
      let outcome = 'ok';
      try {
        const claimed = await claim(shape, signal);
        stop();
        return claimed;
      } catch (error) {
        outcome = isAbort(error) || signal.aborted ? 'cancelled' : errorCode(error).toLowerCase();
        throw error;
      } finally {
        claims.inc({ outcome });
      }
    },
  });
}
