import type { SkillFinding } from '@etude/contracts/skill-proof';

/**
 * Finds dangerous calls, network use and secrets in a skill's code without running it.
 *
 * If the analyser crashes, it returns one finding of severity "error" that says so, never an empty list.
 * Not part of this port: the decision whether a finding rejects the skill.
 */
export interface CodeAnalyser {
  /** @param language Python by default. In "text", such as a procedure or a file beside the code, only secrets are searched for */
  analyse(code: string, signal?: AbortSignal, language?: 'python' | 'text'): Promise<readonly SkillFinding[]>;
}

/**
 * Signs proofs with the installation's key. The worker that verifies skills signs their proofs. Every service that runs skills checks signatures.
 *
 * Not part of this port: making the signed text, which `proofText` does.
 */
export interface ProofSigner {
  readonly keyId: string;
  /** Base64 of an Ed25519 signature over the text. */
  sign(text: string): string;
}

export interface ProofChecker {
  /** Whether the signature is valid. false if the key is unknown. */
  isSigned(text: string, keyId: string, signature: string): boolean;
}
