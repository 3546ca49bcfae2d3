import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SkillDependency, SkillLikeness } from '@etude/contracts/skill-proof';
import { bundledCode, dependencyOn } from './bundle-code.js';
import { canonicalJson, contentDigest } from '../content-digest.js';
import { runTrial, type TestPlace, type Trial } from './run-skill-tests.js';
import type { DependentSkill, VerificationGround, SimilarSkill } from './verification-ground.js';
import { joinedTests } from '../life/known-version.js';
import { testsByName } from './skill-tests.js';
import type { Stage } from './proof.js';
import { SandboxLimits } from '@etude/contracts/sandbox';

/**
 * Looks for regressions. The held-out tests of this version and of the replaced one must pass. So must the replaced version's own tests and
 * those that it had to pass. The tests of callers must pass with this version in its place.
 */
export async function keepWhatWorked(
  skill: Skill,
  trial: Trial,
  { replaced, earlier, dependents }: VerificationGround,
  place: TestPlace,
): Promise<readonly Stage[]> {
  const heldOut = await heldOutTests(skill, trial, replaced, place);
  const versions = replaced === null ? [] : [await testsOfVersions([replaced, ...earlier], trial, place)];
  return [heldOut, ...versions, await testsOfDependents(dependents, place)];
}

async function heldOutTests(skill: Skill, trial: Trial, replaced: Skill | null, place: TestPlace): Promise<Stage> {
  const tests = joinedTests(skill.heldOut, replaced?.heldOut);
  if (tests.length === 0) return { evidence: [] };
  const { passed, reason } = await runTrial({ ...trial, step: 'held-out', tests, isAuthors: false }, place);
  // The reason doesn't say which test failed: a held-out test must stay unknown.
  if (!passed) return { evidence: [], reason: `its held-out tests fail: ${reason.replace(/^test \d+ of \d+: /, '')}` };
  return { evidence: [`its held-out tests pass (${tests.length})`], found: { heldOutPassed: tests.length } };
}

/**
 * Runs the tests of the replaced version, and the tests of earlier versions that no later version has. So new tests never remove old ones.
 * An earlier version is kept as evidence only for such tests, so that evidence doesn't grow with every version.
 */
async function testsOfVersions([replaced, ...earlier]: readonly [Skill, ...Skill[]], trial: Trial, place: TestPlace): Promise<Stage> {
  const number = `version ${replaced.version}`;
  if (isProgram(replaced) !== isProgram(trial)) {
    const kind = isProgram(replaced) ? 'a program' : 'a function';
    return { evidence: [], reason: `${number}, which it would replace, is ${kind}, and it is none; give it another name` };
  }
  const known = new Set(trial.tests.map((test) => asCalled(test, trial)));
  const evidence: string[] = [];
  const kept: SkillDependency[] = [];
  for (const version of [replaced, ...earlier]) {
    const tests = version.tests.filter((test) => version === replaced || !known.has(asCalled(test, version)));
    for (const test of tests) known.add(asCalled(test, version));
    if (version !== replaced && (tests.length === 0 || isProgram(version) !== isProgram(trial))) continue;
    const { passed, reason } = await runTrial(inPlaceOf({ ...version, tests }, trial), place);
    const whose = version === replaced ? 'which it would replace,' : `which ${number} had to pass as well,`;
    if (!passed) return { evidence, reason: `the tests of version ${version.version}, ${whose} fail: ${reason}` };
    evidence.push(version === replaced ? `the tests of ${number} pass` : `the tests of version ${version.version}, ${whose} pass`);
    kept.push(dependencyOn(version));
  }
  return { evidence, found: { kept } };
}

/** Identifies a test. A Python test calls the entry point by its name, so the name counts too. */
const asCalled = (test: SkillTest, { entryPoint }: Pick<Skill, 'entryPoint'>) =>
  canonicalJson(test.kind === 'python' ? [test, entryPoint] : [test]);

const isProgram = ({ entryPoint }: Pick<Trial, 'entryPoint'>) => entryPoint === null;

/** This code on the tests of another version, which call it by that version's entry point. */
function inPlaceOf(version: Skill, trial: Trial): Trial {
  const step = `v${version.version}-${version.digest.slice(0, 8)}`;
  const tests = testsByName(version.tests, version.entryPoint, trial.entryPoint);
  return { ...trial, step, tests, isAuthors: false };
}

async function testsOfDependents(dependents: readonly DependentSkill[], place: TestPlace): Promise<Stage> {
  const failures = await Promise.all(dependents.map((dependent) => failureOfDependent(dependent, place)));
  const failure = failures.find((one) => one !== null);
  if (failure) return { evidence: [], reason: failure };
  const kept = dependents.map(({ skill }) => dependencyOn(skill));
  const evidence = kept.map(({ name, version }) => `the tests of ${name}@${version}, which calls it, pass`);
  return { evidence, found: { kept } };
}

async function failureOfDependent({ skill, repinned, needed }: DependentSkill, place: TestPlace): Promise<string | null> {
  const load = (code: string) => bundledCode(code, needed, repinned.dependencies ?? []);
  const { code, entryPoint, tests, name, version, digest, scope } = skill;
  const step = `of-${contentDigest([scope.tenant, scope.agent, scope.user, name, version, digest]).slice(0, 16)}`;
  const { passed, reason } = await runTrial({ step, code, entryPoint, tests, load }, place);
  return passed ? null : `the tests of ${name}@${version}, which calls it, fail with this version: ${reason}`;
}

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
  const { name, version, scope, digest, code, entryPoint, tests } = other;
  const load = (text: string) => bundledCode(text, needed, other.dependencies ?? []);
  const theirs: Trial = { step: '', code, entryPoint, tests, load };
  const id = contentDigest([scope.tenant, scope.agent, scope.user, name, version, digest]).slice(0, 16);
  const [passesTheirs, theyPass] = await Promise.all([
    passes(own, theirs, `on-${id}`, place),
    passes(theirs, { ...own, tests: skill.tests }, `by-${id}`, place),
  ]);
  return { name, agent: scope.agent, user: scope.user, version, similarity, passesTheirs, theyPass };
}

/** Whether the code passes the tests of `tested`, which call it by that trial's entry point. */
async function passes(code: Trial, tested: Trial, step: string, place: TestPlace): Promise<boolean> {
  if ((code.entryPoint === null) !== (tested.entryPoint === null)) return false;
  const tests = testsByName(tested.tests.slice(0, TESTS_MAX), tested.entryPoint, code.entryPoint);
  if (tests.length === 0) return false;
  const trial = { ...code, step, tests, limits: LIMITS };
  return (await runTrial(trial, place)).passed;
}
