import type { Skill } from '@etude/contracts/memory';
import type { SkillContract } from '@etude/contracts/skill-proof';
import type { ProofChecker, ProofSigner } from '../src/ports/proof-signer.js';
import { skillOf, type SkillGiven } from './bundle-fixture.js';
import { contentDigest, skillDigest } from '../src/skills/content-digest.js';
import { NOTHING_FOUND, signProof } from '../src/skills/proof/proof.js';

/** Signs for tests; anybody could. */
export const TEST_SIGNER: ProofSigner & ProofChecker = {
  keyId: 'test',
  sign: (text) => contentDigest(['signed', text]),
  isSigned: (text, keyId, signature) => keyId === 'test' && signature === contentDigest(['signed', text]),
};

const FOUND = { ...NOTHING_FOUND, testsPassed: 2, mutantsMade: 2, mutantsNoticed: 2 };

/** The same with a contract of these parameters, by JSON Schema, and a proof that `TEST_SIGNER` takes. */
export function provenSkillOf(name: string, code: string, parameters: Record<string, object> = {}, given: SkillGiven = {}): Skill {
  const skill = skillOf(name, code, { contract: contractOf(name, parameters), ...given });
  return proven(skill);
}

/** Signed as it is now. */
export function proven(skill: Skill): Skill {
  const whole = { ...skill, digest: skillDigest(skill) };
  return { ...whole, proof: signProof(whole, FOUND, TEST_SIGNER, 1) };
}

function contractOf(name: string, properties: Record<string, object>): SkillContract {
  const required = Object.keys(properties).filter((key) => !('default' in (properties[key] ?? {})));
  return {
    parameters: Object.keys(properties).map((key) => ({ name: key, type: '', description: '', required: required.includes(key) })),
    inputSchema: { type: 'object', properties, required, additionalProperties: false } as SkillContract['inputSchema'],
    outputSchema: null,
    signature: `def ${name}(${Object.keys(properties).join(', ')})`,
    docstring: '',
  };
}
