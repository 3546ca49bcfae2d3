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
