import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import type { ProofSigner } from '@etude/domain/ports/proof-signer';
import { dependencyOn } from '@etude/domain/skills/use/bundle-code';
import { signProof } from '@etude/domain/skills/verification/proof';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { fileProofSigner } from '@etude/platform/proof-keys';

/** Keys as the launcher makes them: one that verification signs with, and the public one that the gateway believes. */
export function writeProofKeys(dir: string): { readonly signingPath: string; readonly publicPath: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const [signingPath, publicPath] = [join(dir, 'signing-key.pem'), join(dir, 'public-keys.pem')];
  writeFileSync(signingPath, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(publicPath, publicKey.export({ type: 'spki', format: 'pem' }));
  return { signingPath, publicPath };
}

const WAYS: Readonly<Record<SkillStatus, readonly SkillStatus[]>> = {
  candidate: [],
  verified: ['verified'],
  pending_review: ['verified', 'pending_review'],
  active: ['verified', 'active'],
  deprecated: ['verified', 'active', 'deprecated'],
  archived: ['verified', 'active', 'archived'],
  rejected: ['rejected'],
};

/** What verification would have found, held to the tests of what is active. */
function foundOf({ tests }: Skill, active: readonly Skill[]) {
  const mutants = { mutantsMade: 4, mutantsNoticed: 4, mutantsSurvived: [] };
  return { testsPassed: tests.length, heldOutPassed: 0, ...mutants, findings: [], kept: active.map(dependencyOn), alike: [] };
}

/** Stores a skill and takes it to its status, with a proof as verification signs it; what was active before makes room for it. */
export async function storeSkill(
  procedural: Pick<ProceduralMemory, 'store' | 'move' | 'versions'>,
  skill: Skill,
  signer: ProofSigner,
  contract?: SkillContract,
): Promise<Skill> {
  let stored = await procedural.store(skill);
  for (const to of WAYS[skill.status]) {
    const active = await procedural.versions(stored.scope, stored.name, 'active');
    const proof = to === 'verified' ? { proof: signProof(stored, foundOf(stored, active), signer, stored.createdAt) } : {};
    const inItsPlace = to === 'active' ? active : [];
    const away = inItsPlace.filter((version) => version.scope.user === stored.scope.user && version.version !== stored.version);
    await procedural.move(
      away.map((version) => ({ key: keyOf(version), to: 'deprecated', by: 'verification', reason: '', at: stored.createdAt })),
    );
    const move = { key: keyOf(stored), to, by: 'verification', reason: '', at: stored.createdAt, ...proof };
    stored = (await procedural.move([contract === undefined ? move : { ...move, contract }]))[0] ?? stored;
  }
  return stored;
}

export const signerAt = (path: string): ProofSigner => fileProofSigner(path);
