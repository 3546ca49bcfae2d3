import type { Skill } from '@etude/contracts/memory';
import type { SkillContract } from '@etude/contracts/skill-proof';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import type { SkillVersions } from '../src/ports/memory.js';
import type { ProofChecker, ProofSigner } from '../src/ports/verification.js';
import { contentDigest, skillDigest } from '../src/skills/content-digest.js';
import type { VerificationGround } from '../src/skills/proof/keep-what-worked.js';
import { NOTHING_FOUND, signProof } from '../src/skills/proof/proof.js';
import { FakeProceduralMemory } from './fake-procedural-memory.js';
import { skillOf as recordOf } from './memory-records.js';
import { PythonSandboxes } from './python-sandboxes.js';

const scope = { tenant: 'acme', agent: 'solver', user: null };
const UNTRIED: Partial<Skill> = {
  tests: [],
  cues: [],
  fingerprints: [],
  status: 'active',
  sources: [],
  model: null,
  createdAt: 1,
  updatedAt: 1,
};

export interface SkillGiven extends Partial<Skill> {
  readonly needs?: readonly Skill[];
}

/** An active skill for tests. Its entry point has the skill's name. */
export function skillOf(name: string, code: string, { needs = [], ...more }: SkillGiven = {}): Skill {
  const pins = needs.length === 0 ? {} : { dependencies: needs.map(dependencyOn) };
  return recordOf({ ...UNTRIED, name, code, scope, description: `Does what ${name} does.`, entryPoint: name, ...pins, ...more });
}

/** The surroundings of a skill without earlier versions, callees, callers and similar skills. */
export const NO_GROUND: VerificationGround = { replaced: null, needed: [], dependents: [], similar: [] };

export function registryOf(...skills: readonly Skill[]): SkillVersions {
  const memory = new FakeProceduralMemory().keep(...skills);
  return { versions: (...asked) => memory.versions(...asked) };
}

/** The output of a program on the machine's Python, or its traceback if it fails. */
export async function printed(code: string): Promise<string> {
  const runs = [{ kind: 'program' as const, code, stdin: '' }];
  const request = { executionId: 'e', tenant: 'acme', files: [], stopOnFailure: false, limits: undefined as never, runs };
  const [run] = (await new PythonSandboxes().execute(request)).runs;
  return run?.exit === 'ok' ? run.stdout.trim() : `failed: ${run?.stderr}`;
}

/** The refusal as "CODE: message", or "none" if the work succeeds. */
export const errorOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'none',
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );

/** An active skill. It is a program unless an entry point is given. */
export function programOf(given: Partial<Skill> = {}): Skill {
  const program = {
    scope: { ...scope, agent: 'default' },
    description: 'Doubles a number.',
    entryPoint: null,
    digest: '0'.repeat(64),
    model: 'fake',
  };
  return skillOf('double_it', 'print("right")', { ...program, ...given });
}

/** A signer for tests, without a secret key. */
export const TEST_SIGNER: ProofSigner & ProofChecker = {
  keyId: 'test',
  sign: (text) => contentDigest(['signed', text]),
  isSigned: (text, keyId, signature) => keyId === 'test' && signature === contentDigest(['signed', text]),
};

const FOUND = { ...NOTHING_FOUND, testsPassed: 2, mutantsMade: 2, mutantsNoticed: 2 };

/** `skillOf` with a contract for these parameters (JSON Schemas by name) and a proof that `TEST_SIGNER` signed. */
export function provenSkillOf(name: string, code: string, parameters: Record<string, object> = {}, given: SkillGiven = {}): Skill {
  const skill = skillOf(name, code, { contract: contractOf(name, parameters), ...given });
  return proven(skill);
}

export function proven(skill: Skill): Skill {
  const whole = { ...skill, digest: skillDigest(skill) };
  return { ...whole, proof: signProof(whole, FOUND, TEST_SIGNER, 1) };
}

/** A contract with these JSON Schemas by parameter. Parameters without a default are required. */
export function contractOf(name: string, properties: Record<string, object>): SkillContract {
  const required = Object.keys(properties).filter((key) => !('default' in (properties[key] ?? {})));
  return {
    parameters: Object.keys(properties).map((key) => ({ name: key, type: '', description: '', required: required.includes(key) })),
    inputSchema: { type: 'object', properties, required, additionalProperties: false } as SkillContract['inputSchema'],
    outputSchema: null,
    signature: `def ${name}(${Object.keys(properties).join(', ')})`,
    docstring: '',
  };
}
