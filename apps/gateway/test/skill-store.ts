import type { Skill } from '@etude/contracts/memory';
import type { SkillContract } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import type { ProofSigner } from '@etude/domain/ports/verification';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { signProof } from '@etude/domain/skills/proof/proof';
import { storeAt } from '@etude/domain/testing/skill-lives';
import type { Memory } from '@etude/memory/memory';
import { fileProofSigner } from '@etude/platform/proof-keys';
import { writeProofKeys } from '@etude/test-support/proof-keys';
import { beforeAll } from 'vitest';
import { gatewayForFile, type Settings } from './gateway.harness.js';

/** The result of a verification that includes the tests of the active version. */
function foundOf({ tests }: Skill, active: readonly Skill[]) {
  const mutants = { mutantsMade: 4, mutantsNoticed: 4, mutantsSurvived: [] };
  return { testsPassed: tests.length, heldOutPassed: 0, ...mutants, findings: [], kept: active.map(dependencyOn), alike: [] };
}

/** Stores a skill and moves it to its status, with a signed proof. The stored version replaces the active one. */
export function storeSkill(
  procedural: Pick<ProceduralMemory, 'store' | 'move' | 'versions'>,
  skill: Skill,
  signer: ProofSigner,
  contract?: SkillContract,
): Promise<Skill> {
  const proof = (stored: Skill, active: readonly Skill[]) => signProof(stored, foundOf(stored, active), signer, stored.createdAt);
  return storeAt(procedural, skill, { at: skill.createdAt, proof, ...(contract === undefined ? {} : { contract }) });
}

/** A signer with a new pair of keys in `dir`. */
export const newSigner = (dir: string): ProofSigner => fileProofSigner(writeProofKeys(dir).ETUDE_SKILLS_SIGNING_KEY_PATH);

/** A gateway for one test file, and a second connection to its memory, like that of a consolidation worker. */
export function skillMemoryForFile(settings: () => Promise<Settings> = async () => ({})) {
  const rig = gatewayForFile(async () => ({ ...trusted, ...(await settings()) }));
  const { ETUDE_SKILLS_SIGNING_KEY_PATH, ...trusted } = writeProofKeys(rig.dir);
  const signer = fileProofSigner(ETUDE_SKILLS_SIGNING_KEY_PATH);
  let memory: Memory;
  beforeAll(async () => {
    memory = await rig.openMemory();
  });
  return { rig, signer, memory: () => memory, store: (skill: Skill) => storeSkill(memory.procedural, skill, signer) };
}
