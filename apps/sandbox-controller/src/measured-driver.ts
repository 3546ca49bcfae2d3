import { errorCode, isAbort } from '@etude/contracts/errors';
import { counter, gauge, histogram } from '@etude/platform/metrics';
import type { ClaimedSandbox, SandboxDriver, SandboxShape } from '@etude/sandbox/sandbox-driver';

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
