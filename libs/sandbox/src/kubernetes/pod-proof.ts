import { SandboxLimits } from '@etude/contracts/sandbox';
import { controlMissing, probe } from '../probe.js';
import type { ClaimedSandbox } from '../sandbox-driver.js';
import type { KubeLogger } from './pod-view.js';
import type { SandboxTemplate } from './sandbox-template.js';

const PROBE_TIMEOUT_MS = 60_000;

export interface ProofDeps {
  /** Claims a pod of the template without waiting for its proof. */
  readonly claim: (signal: AbortSignal) => Promise<ClaimedSandbox>;
  /** Names of the controls that the operator allows to be missing. */
  readonly allowMissing: readonly string[];
  readonly log: KubeLogger;
}

/**
 * Proves that the pods of one template enforce every control, by trying each from inside one of them.
 *
 * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control; what `claim` throws
 */
export async function provePods(name: string, template: SandboxTemplate, { claim, allowMissing, log }: ProofDeps): Promise<void> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  const sandbox = await claim(signal);
  try {
    const { memoryMiB, diskMiB, egress } = template;
    const limits = SandboxLimits.parse({ processes: 8, memoryMiB, diskMiB });
    const found = await probe(sandbox, limits, signal, { pod: { internet: egress.length > 0 } });
    for (const [control, why] of Object.entries(found)) {
      if (!allowMissing.includes(control)) throw controlMissing(control, `in pods of the template "${name}"`, why, true);
      log.warn({ template: name, control }, `a sandbox control is missing, as allowed: ${why}`);
    }
  } finally {
    void sandbox.release();
  }
}
