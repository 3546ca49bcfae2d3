import type { SkillFinding } from '@etude/contracts/skill-proof';

/**
 * Finds dangerous calls, network use and secrets in a skill's code without running it.
 *
 * If the analyser crashes, it returns one finding of severity "error" that says so, never an empty list.
 * Not in it: deciding what follows from a finding.
 */
export interface CodeAnalyser {
  /** @param language Python by default; "text" looks for secrets only, as in a procedure or a file beside the code */
  analyse(code: string, signal?: AbortSignal, language?: 'python' | 'text'): Promise<readonly SkillFinding[]>;
}

/**
 * Signs proofs with the installation's key. The verifying worker signs; every service that runs skills checks.
 *
 * Not in it: the text that is signed; see `skill-proof.ts`.
 */
export interface ProofSigner {
  readonly keyId: string;
  /** Base64 of an Ed25519 signature over the text. */
  sign(text: string): string;
}

export interface ProofChecker {
  /** False also if the key is unknown. */
  isSigned(text: string, keyId: string, signature: string): boolean;
}
