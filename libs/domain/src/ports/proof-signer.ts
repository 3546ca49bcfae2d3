/**
 * The installation's signature under proofs. The worker that verifies signs; whoever runs a skill checks.
 *
 * Not in it: what is signed; see `skill-proof.ts`.
 */
export interface ProofSigner {
  readonly keyId: string;
  /** Base64 of an Ed25519 signature over the text. */
  sign(text: string): string;
}

export interface ProofChecker {
  /** False also where the key is not known here. */
  isSigned(text: string, keyId: string, signature: string): boolean;
}
