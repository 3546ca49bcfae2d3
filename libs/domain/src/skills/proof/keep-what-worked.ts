import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, SkillRegistry } from '../../ports/memory.js';
import { contentDigest } from '../content-digest.js';
import { contentOf, isPinOf, neededSkills, refusalOf, versionKey } from '../life/call-graph.js';
import { activeVersion } from '../life/decisions.js';
import { isReadBy, searchSkills } from '../life/find-skill.js';
import { joinedTests } from '../life/carried-over.js';
import { bundledCode, dependencyOn } from './bundle-code.js';
import type { Stage } from './proof.js';
import { runTrial, SHORT_LIMITS, type TestPlace, testsByName, type Trial } from './run-skill-tests.js';

export interface VerificationGround {
  /** The active version that the skill would replace. The skill must also pass that version's tests. null if the skill replaces no version. */
  readonly replaced: Skill | null;
  /** The skills that this skill calls, directly or through others, in the order of loading. */
  readonly needed: readonly Skill[];
  /** Active callers that all readers of the skill can read. Their tests must pass with this version. Other callers stay pinned to the old version. */
  readonly dependents: readonly OtherSkill[];
  /** Skills similar to the name and description, or to the first cue, most similar first. `similarity` is calibrated. */
  readonly similar: ReadonlyArray<OtherSkill & { readonly similarity: number }>;
}

interface OtherSkill {
  readonly skill: Skill;
  /** The skills that this skill's code calls in this verification. */
  readonly pins: readonly SkillDependency[];
  /** The skills that this skill needs with these pins, in the order of loading. */
  readonly needed: readonly Skill[];
}

/** Below this similarity, two skills are assumed to do different things. */
const SIMILARITY_MIN = 0.85;
const SIMILAR_MAX = 3;

/** @throws EtudeError FAILED_PRECONDITION if a called skill can't be loaded, MEMORY_UNAVAILABLE */
export async function gatherGround(
  skill: Skill,
  procedural: ProceduralMemory,
  isProven: (skill: Skill) => boolean,
): Promise<VerificationGround> {
  const needed = await neededSkills(procedural, skill, isProven);
  const calling = (await activeDependents(skill, procedural)).filter(({ scope }) => isReadBy(scope, skill.scope));
  const dependents = await Promise.all(
    calling.map(async (dependent) => {
      const others = (dependent.dependencies ?? []).filter((pin) => !isPinOf(pin, skill));
      const rest = await neededSkills(procedural, { ...dependent, dependencies: others }, isProven);
      const loaded = new Map([...rest, ...needed, skill].map((one) => [contentOf(dependencyOn(one)), one]));
      return { skill: dependent, pins: [...others, dependencyOn(skill)], needed: [...loaded.values()] };
    }),
  );
  return { replaced: await activeVersion(procedural, skill), needed, dependents, similar: await similarTo(skill, procedural, isProven) };
}

export async function activeDependents({ name, scope }: Skill, registry: SkillRegistry): Promise<readonly Skill[]> {
  return (await registry.dependents({ ...scope, name })).filter(({ status }) => status === 'active');
}

async function similarTo(
  skill: Skill,
  procedural: ProceduralMemory,
  isProven: (skill: Skill) => boolean,
): Promise<VerificationGround['similar']> {
  if (skill.kind !== 'function') return [];
  const texts = [`${skill.name.replaceAll('_', ' ')} ${skill.description}`, ...skill.cues.slice(0, 1)];
  // Searches for one more, because the skill's own active version is among the most similar.
  const asked = { limit: SIMILAR_MAX + 1, similarityMin: SIMILARITY_MIN };
  const found = (await Promise.all(texts.map((text) => searchSkills(procedural, skill.scope, { ...asked, text })))).flat();
  const byKey = Map.groupBy(
    found.toSorted((a, b) => b.similarity - a.similarity),
    (hit) => versionKey(hit.skill),
  );
  const nearest = [...byKey.values()].flatMap((hits) => hits.slice(0, 1));
  const others = nearest.filter((hit) => hit.skill.kind === 'function' && hit.skill.name !== skill.name).slice(0, SIMILAR_MAX);
  const similar = others.map(async ({ skill: other, similarity }) => {
    const needed = await neededSkills(procedural, other, isProven).catch(refusalOf);
    // A skill whose callees can't be loaded has no results to compare.
    return typeof needed === 'string' ? [] : [{ skill: other, pins: other.dependencies ?? [], similarity, needed }];
  });
  return (await Promise.all(similar)).flat();
}

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
  if (tests.length === 0) return {};
  const { passed, reason } = await runTrial({ ...trial, step: 'held-out', tests, isAuthors: false }, place);
  // The reason doesn't say which test failed, because nobody may learn anything about a held-out test.
  if (!passed) return { reason: `its held-out tests fail: ${reason.replace(/^test \d+ of \d+: /, '')}` };
  return { evidence: [`its held-out tests pass (${tests.length})`], found: { heldOutPassed: tests.length } };
}

async function testsOfReplaced(replaced: Skill, trial: Trial, place: TestPlace): Promise<Stage> {
  const number = `version ${replaced.version}`;
  if (isProgram(replaced) !== isProgram(trial)) {
    const kind = isProgram(replaced) ? 'a program' : 'a function';
    return { reason: `${number}, which it would replace, is ${kind}, and the new version is not; use another name` };
  }
  const step = `v${replaced.version}-${replaced.digest.slice(0, 8)}`;
  const tests = testsByName(replaced.tests, replaced.entryPoint, trial.entryPoint);
  const { passed, reason } = await runTrial({ ...trial, step, tests, isAuthors: false }, place);
  if (!passed) return { reason: `the tests of ${number}, which it would replace, fail: ${reason}` };
  return { evidence: [`the tests of ${number} pass`], found: { kept: [dependencyOn(replaced)] } };
}

const isProgram = ({ entryPoint }: Pick<Trial, 'entryPoint'>) => entryPoint === null;

async function testsOfDependents(dependents: readonly OtherSkill[], place: TestPlace): Promise<Stage> {
  const trials = dependents.map(trialOf).map((trial) => runTrial({ ...trial, step: `of-${trial.step}` }, place));
  const outcomes = await Promise.all(trials);
  const kept = dependents.map(({ skill }) => dependencyOn(skill));
  const failed = outcomes.findIndex(({ passed }) => !passed);
  if (failed >= 0) {
    const caller = `${kept[failed]?.name}@${kept[failed]?.version}`;
    return { reason: `the tests of ${caller}, which calls it, fail with this version: ${outcomes[failed]?.reason}` };
  }
  const evidence = kept.map(({ name, version }) => `the tests of ${name}@${version}, which calls it, pass`);
  return { evidence, found: { kept } };
}

function trialOf({ skill, pins, needed }: OtherSkill): Trial {
  const { code, entryPoint, tests } = skill;
  const step = contentDigest(dependencyOn(skill)).slice(0, 16);
  return { step, code, entryPoint, tests, load: (text) => bundledCode(text, needed, pins) };
}

/** Maximum number of tests of a similar skill that are run. More tests would add nothing. */
const TESTS_MAX = 20;

/** Finds out whether skills with similar descriptions do the same: each of them is run on the other's tests. */
export async function compareAlike(own: Trial, similar: VerificationGround['similar'], place: TestPlace): Promise<Stage> {
  const compared = similar.map(async (other) => {
    const { name, version, scope } = other.skill;
    const theirs = trialOf(other);
    const [passesTheirs, theyPass] = await Promise.all([
      passes(own, theirs, `on-${theirs.step}`, place),
      passes(theirs, own, `by-${theirs.step}`, place),
    ]);
    return { name, agent: scope.agent, user: scope.user, version, similarity: other.similarity, passesTheirs, theyPass };
  });
  const alike = await Promise.all(compared);
  const same = alike.filter(({ passesTheirs, theyPass }) => passesTheirs && theyPass).map(({ name }) => name);
  const evidence = alike.length === 0 ? [] : [`active skills with similar descriptions: ${alike.map(({ name }) => name).join(', ')}`];
  if (same.length > 0) evidence.push(`each passes the tests of the other: ${same.join(', ')}`);
  return { evidence, found: { alike } };
}

async function passes(code: Trial, tested: Trial, step: string, place: TestPlace): Promise<boolean> {
  if (isProgram(code) !== isProgram(tested)) return false;
  const tests = testsByName(tested.tests.slice(0, TESTS_MAX), tested.entryPoint, code.entryPoint);
  return tests.length > 0 && (await runTrial({ ...code, step, tests, limits: SHORT_LIMITS }, place)).passed;
}
