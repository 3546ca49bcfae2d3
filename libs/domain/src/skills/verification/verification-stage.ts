import type { ProofFindings } from './proof.js';

/** What one stage of a verification found. */
export interface Stage {
  readonly evidence: readonly string[];
  readonly found?: Partial<ProofFindings>;
  /** Why the skill is not verified; absent where nothing is against it. */
  readonly reason?: string;
}
