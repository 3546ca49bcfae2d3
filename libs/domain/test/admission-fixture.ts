import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { settingsOf } from './memory-records.js';
import { PythonSandboxes } from './python-sandboxes.js';
import type { AdmissionDeps } from '../src/skills/proof/admit-skill.js';
import { skillDigest } from '../src/skills/content-digest.js';
import { TEST_SIGNER } from './bundle-fixture.js';
import { io } from './skill-tests.js';
import { candidateFromTests } from '../src/skills/proof/skill-candidate.js';

export const scope = { tenant: 'acme', agent: 'solver', user: null };

/** A program that doubles a number, with one test. If an entry point is given that the code doesn't define as a function, it is a snippet. */
export function candidate({
  code = 'print(int(input()) * 2)',
  tests = [io('2', '4')],
  entryPoint = null,
  ...over
}: Partial<Skill> = {}): Skill {
  const origin = { scope, prompt: 'Double it.', fingerprint: 'f', description: '', scenarios: [], model: null, scripted: false, at: 1 };
  const skill = candidateFromTests({ ...origin, code, tests, entryPoint, sources: [] });
  if (skill === null) throw new Error('no candidate');
  return { ...skill, digest: skillDigest({ ...skill, ...over }), ...over };
}

/** Dependencies with the machine's Python and an analyser that finds nothing. They record the requests for verification. */
export function admissionDeps(
  procedural: ProceduralMemory,
  settings: Partial<ProceduralMemorySettings> = {},
  requested: Skill[] = [],
): AdmissionDeps {
  return {
    procedural,
    sandboxes: new PythonSandboxes(),
    analyser: { analyse: async () => [] },
    mutationScoreMin: 0.5,
    clock: { now: () => 9 },
    settings: settingsOf({ approvalMode: 'automatic', ...settings }),
    signer: TEST_SIGNER,
    checker: TEST_SIGNER,
    requestVerification: async (skill) => void requested.push(skill),
  };
}
