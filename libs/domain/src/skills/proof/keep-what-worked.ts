import type { Skill } from '@etude/contracts/memory';
import type { SkillLikeness } from '@etude/contracts/skill-proof';
import { bundledCode, dependencyOn } from './bundle-code.js';
import { contentDigest } from '../content-digest.js';
import { runTrial, type TestPlace, type Trial } from './run-skill-tests.js';
import type { DependentSkill, VerificationGround, SimilarSkill } from './verification-ground.js';
import { joinedTests } from '../life/known-version.js';
import { testsByName } from './skill-tests.js';
import type { Stage } from './proof.js';
import { SandboxLimits } from '@etude/contracts/sandbox';

/**
 * Looks for regressions. The held-out tests of this version and of the replaced one must pass, and the replaced version's own tests. The
 * tests of callers must pass with this version in its place.
 */
export async function keepWhatWorked(
  skill: Skill,
  trial: Trial,
  { replaced, dependents }: VerificationGround,
  place: TestPlace,
): Promise<readonly Stage[]> {
  const heldOut = await heldOutTests(skill, trial, replaced, place);
  const ofReplaced = replaced === null ? [] : [await testsOfReplaced(replaced, trial, place)];
  return [heldOut, ...ofReplaced, await testsOfDependents(dependents, place)];
}

async function heldOutTests(skill: Skill, trial: Trial, replaced: Skill | null, place: TestPlace): Promise<Stage> {
  const tests = joinedTests(skill.heldOut, replaced?.heldOut);
  if (tests.length === 0) return { evidence: [] };
  const { passed, reason } = await runTrial({ ...trial, step: 'held-out', tests, isAuthors: false }, place);
  // The reason doesn't say which test failed: a held-out test must stay unknown.
  if (!passed) return { evidence: [], reason: `its held-out tests fail: ${reason.replace(/^test \d+ of \d+: /, '')}` };
  return { evidence: [`its held-out tests pass (${tests.length})`], found: { heldOutPassed: tests.length } };
}

/** Runs this code on the tests of the replaced version, which call it by that version's entry point. */
async function testsOfReplaced(replaced: Skill, trial: Trial, place: TestPlace): Promise<Stage> {
  const number = `version ${replaced.version}`;
  if (isProgram(replaced) !== isProgram(trial)) {
    const kind = isProgram(replaced) ? 'a program' : 'a function';
    return { evidence: [], reason: `${number}, which it would replace, is ${kind}, and it is none; give it another name` };
  }
  const step = `v${replaced.version}-${replaced.digest.slice(0, 8)}`;
  const tests = testsByName(replaced.tests, replaced.entryPoint, trial.entryPoint);
  const { passed, reason } = await runTrial({ ...trial, step, tests, isAuthors: false }, place);
  if (!passed) return { evidence: [], reason: `the tests of ${number}, which it would replace, fail: ${reason}` };
  return { evidence: [`the tests of ${number} pass`], found: { kept: [dependencyOn(replaced)] } };
}

const isProgram = ({ entryPoint }: Pick<Trial, 'entryPoint'>) => entryPoint === null;

async function testsOfDependents(dependents: readonly DependentSkill[], place: TestPlace): Promise<Stage> {
  const failures = await Promise.all(dependents.map((dependent) => failureOfDependent(dependent, place)));
  const failure = failures.find((one) => one !== null);
  if (failure) return { evidence: [], reason: failure };
  const kept = dependents.map(({ skill }) => dependencyOn(skill));
  const evidence = kept.map(({ name, version }) => `the tests of ${name}@${version}, which calls it, pass`);
  return { evidence, found: { kept } };
}

async function failureOfDependent({ skill, pins, needed }: DependentSkill, place: TestPlace): Promise<string | null> {
  const load = (code: string) => bundledCode(code, needed, pins);
  const { code, entryPoint, tests, name, version } = skill;
  const { passed, reason } = await runTrial({ step: `of-${idOf(skill)}`, code, entryPoint, tests, load }, place);
  return passed ? null : `the tests of ${name}@${version}, which calls it, fail with this version: ${reason}`;
}

const idOf = (skill: Skill) => contentDigest(dependencyOn(skill)).slice(0, 16);

/** The most tests of another skill that are run; more would add nothing. */
const TESTS_MAX = 20;
/** Short limits, since a skill may do anything on tests that were made for another one. */
const LIMITS = SandboxLimits.parse({ cpuMs: 2_000, wallMs: 4_000 });

/** Finds out whether skills with similar descriptions do the same: each runs on the other's tests. */
export async function compareAlike(skill: Skill, own: Trial, similar: readonly SimilarSkill[], place: TestPlace): Promise<Stage> {
  const alike = await Promise.all(similar.map((other) => likeness(skill, own, other, place)));
  const same = alike.filter(({ passesTheirs, theyPass }) => passesTheirs && theyPass).map(({ name }) => name);
  const evidence = alike.length === 0 ? [] : [`active skills that read much the same: ${alike.map(({ name }) => name).join(', ')}`];
  if (same.length > 0) evidence.push(`each passes the tests of the other: ${same.join(', ')}`);
  return { evidence, found: { alike } };
}

async function likeness(
  skill: Skill,
  own: Trial,
  { skill: other, similarity, needed }: SimilarSkill,
  place: TestPlace,
): Promise<SkillLikeness> {
  const { name, version, scope, code, entryPoint, tests } = other;
  const load = (text: string) => bundledCode(text, needed, other.dependencies ?? []);
  const theirs: Trial = { step: '', code, entryPoint, tests, load };
  const id = idOf(other);
  const [passesTheirs, theyPass] = await Promise.all([
    passes(own, theirs, `on-${id}`, place),
    passes(theirs, { ...own, tests: skill.tests }, `by-${id}`, place),
  ]);
  return { name, agent: scope.agent, user: scope.user, version, similarity, passesTheirs, theyPass };
}

/** Whether the code passes the tests of `tested`, which call it by that trial's entry point. */
async function passes(code: Trial, tested: Trial, step: string, place: TestPlace): Promise<boolean> {
  if (isProgram(code) !== isProgram(tested)) return false;
  const tests = testsByName(tested.tests.slice(0, TESTS_MAX), tested.entryPoint, code.entryPoint);
  return tests.length > 0 && (await runTrial({ ...code, step, tests, limits: LIMITS }, place)).passed;
}
