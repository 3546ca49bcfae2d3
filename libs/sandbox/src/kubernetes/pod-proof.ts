import { SandboxLimits } from '@etude/contracts/sandbox';
import { controlMissing, probe } from '../probe.js';
import type { ClaimedSandbox } from '../sandbox-driver.js';
import type { KubeLogger } from './pod-view.js';
import type { SandboxTemplate } from './sandbox-template.js';

const PROBE_TIMEOUT_MS = 60_000;

export interface ProofDeps {
  /** Claims a pod of the template without waiting for its proof. */
  claim(signal: AbortSignal): Promise<ClaimedSandbox>;
  /** Names of the controls that the operator allows to be missing. */
  readonly allowMissing: readonly string[];
  readonly log: KubeLogger;
}

/** Proves that the pods of one template enforce every control, by trying each from inside one of them. */
export class PodProof {
  private proof: Promise<void> | null = null;

  constructor(
    private readonly name: string,
    private readonly template: SandboxTemplate,
    private readonly deps: ProofDeps,
  ) {}

  /**
   * Proves the template, unless it is proven. After a failure the next call tries again.
   *
   * @throws EtudeError SANDBOX_CONTROL_MISSING naming the control; what `claim` throws
   */
  ensure(): Promise<void> {
    this.proof ??= this.prove().catch((error: unknown) => {
      this.proof = null;
      throw error;
    });
    return this.proof;
  }

  private async prove(): Promise<void> {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const sandbox = await this.deps.claim(signal);
    try {
      const { memoryMiB, diskMiB, egress } = this.template;
      const limits = SandboxLimits.parse({ processes: 8, memoryMiB, diskMiB });
      const found = await probe(sandbox, limits, signal, { pod: { internet: egress.length > 0 } });
      for (const [control, why] of Object.entries(found)) this.accept(control, why);
    } finally {
      void sandbox.release();
    }
  }

  private accept(control: string, why: string): void {
    const { allowMissing, log } = this.deps;
    if (!allowMissing.includes(control)) throw controlMissing(control, `in pods of the template "${this.name}"`, why, true);
    log.warn({ template: this.name, control }, `a sandbox control is missing, as allowed: ${why}`);
  }
}
