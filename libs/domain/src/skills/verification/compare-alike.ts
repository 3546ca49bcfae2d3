import type { Skill } from '@etude/contracts/memory';
import { SandboxLimits } from '@etude/contracts/sandbox';
import type { SkillLikeness } from '@etude/contracts/skill-proof';
import { bundledCode } from '../use/bundle-code.js';
import { contentDigest } from '../content-digest.js';
import { runTrial, type TestPlace, type Trial } from './run-skill-tests.js';
import type { SimilarSkill } from './verification-ground.js';
import { testsByName } from './tests-by-name.js';
import type { Stage } from './verification-stage.js';

/** Of each other's tests; more tell nothing more. */
const TESTS_MAX = 20;
/** A skill on tests that were made for another may do anything. */
const LIMITS = SandboxLimits.parse({ cpuMs: 2_000, wallMs: 4_000 });

/** Whether skills that read much the same do much the same: each runs on the other's tests. */
export async function compareAlike(
  skill: Skill,
  own: Trial,
  similar: readonly SimilarSkill[],
  place: TestPlace,
  signal: AbortSignal,
): Promise<Stage> {
  const alike = await Promise.all(similar.map((other) => likeness(skill, own, other, place, signal)));
  const same = alike.filter(({ passesTheirs, theyPass }) => passesTheirs && theyPass).map(({ name }) => name);
  const evidence =
    alike.length === 0
      ? []
      : [alike.length === 1 ? '1 active skill reads much the same' : `${alike.length} active skills read much the same`];
  return {
    evidence: same.length === 0 ? evidence : [...evidence, `and do the same on each other's tests: ${same.join(', ')}`],
    found: { alike },
  };
}

async function likeness(
  skill: Skill,
  own: Trial,
  { skill: other, similarity, needed }: SimilarSkill,
  place: TestPlace,
  signal: AbortSignal,
): Promise<SkillLikeness> {
  const { name, version, scope, digest, code, entryPoint, tests } = other;
  const load = (text: string) => bundledCode(text, needed, other.dependencies ?? []);
  const theirs: Trial = { step: '', code, entryPoint, tests, load };
  const id = contentDigest([scope.tenant, scope.agent, scope.user, name, version, digest]).slice(0, 16);
  const [passesTheirs, theyPass] = await Promise.all([
    passes(own, theirs, `on-${id}`, place, signal),
    passes(theirs, { ...own, tests: skill.tests }, `by-${id}`, place, signal),
  ]);
  return { name, agent: scope.agent, user: scope.user, version, similarity, passesTheirs, theyPass };
}

/** Whether this code passes those tests, under the name by which they call it. */
async function passes(code: Trial, tested: Trial, step: string, place: TestPlace, signal: AbortSignal): Promise<boolean> {
  if ((code.entryPoint === null) !== (tested.entryPoint === null)) return false;
  const tests = testsByName(tested.tests.slice(0, TESTS_MAX), tested.entryPoint, code.entryPoint);
  if (tests.length === 0) return false;
  const trial = { ...code, step, tests, limits: LIMITS };
  return (await runTrial(trial, place, signal)).passed;
}
