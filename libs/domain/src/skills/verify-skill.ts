import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { type ExecutionRequest, RETRYABLE_EXITS, type RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import { sameValue } from '../evaluation/compare.js';
import { judge } from '../evaluation/judge.js';
import { planRuns, stopOnFailure } from '../evaluation/plan-runs.js';
import type { Sandboxes } from '../ports/sandboxes.js';
import { breakingRun, readBrokenCopies } from './broken-copies.js';
import { contentDigest } from './content-digest.js';
import { evaluatorsOf } from './skill-tests.js';

export interface VerificationDeps {
  readonly sandboxes: Sandboxes;
  /** The active version that this one would replace: it has to pass that one's tests as well. */
  readonly replaced?: Skill | null;
  /** Number of the try, from 1. Within one try every execution happens once, however often it is asked for. */
  readonly attempt?: number;
}

export interface Verification {
  readonly passed: boolean;
  /** What was tried and how it went, one line each. */
  readonly evidence: readonly string[];
  /** Why it did not pass; empty where it did. */
  readonly reason: string;
}

/** Sandboxes come warmed with one of their own; one with this seed is started for the purpose, so only one run asks for it. */
const OTHER_HASH_SEED = 4_242_424_242;
const LIMITS = SandboxLimits.parse({});
/** The program that breaks the code prints a few copies of it. */
const BREAKING_LIMITS = SandboxLimits.parse({ outputKiB: 16_384 });
/** A broken copy may well run for ever. */
const BROKEN_LIMITS = SandboxLimits.parse({ cpuMs: 3_000, wallMs: 6_000 });

/** Code under tests; the skill's own where they are left out. */
interface Trial {
  readonly step: string;
  readonly code?: string;
  readonly tested?: Skill;
  readonly hashSeed?: number;
  readonly limits?: SandboxLimits;
}

interface Outcome {
  readonly passed: boolean;
  readonly reason: string;
  readonly results: readonly RunResult[];
}

/**
 * Whether a skill may be used: it parses, its tests pass, pass again with the same results under another hash seed, and fail
 * on at least one copy that was broken on purpose, since tests that nothing can fail prove nothing.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY (retryable); an AbortError when `signal` aborts
 * Not in it: whether the skill is what its description says; tests can't tell.
 */
export async function verifySkill(skill: Skill, deps: VerificationDeps, signal: AbortSignal): Promise<Verification> {
  const evidence: string[] = [];
  const rejected = (reason: string): Verification => ({ passed: false, evidence, reason });

  const broken = await breakCopies(skill, deps, signal);
  if ('error' in broken) return rejected(broken.error);
  evidence.push('the code parses');
  if (skill.kind !== 'function') return { passed: true, evidence: [...evidence, `a ${skill.kind} is shown, never run`], reason: '' };
  if (skill.tests.length === 0) return rejected('it has no tests');

  const first = await runTests(skill, { step: 'first' }, deps, signal);
  if (!first.passed) return rejected(`its tests fail: ${first.reason}`);
  const second = await runTests(skill, { step: 'second', hashSeed: OTHER_HASH_SEED }, deps, signal);
  if (!second.passed) return rejected(`its tests fail under another hash seed: ${second.reason}`);
  if (!sameResults(first.results, second.results)) return rejected('its tests give other results under another hash seed');
  evidence.push(`its tests pass twice with the same results (${skill.tests.length})`);

  if (deps.replaced) {
    const kept = await runTests(skill, { step: `v${deps.replaced.version}`, tested: deps.replaced }, deps, signal);
    if (!kept.passed) return rejected(`the tests of version ${deps.replaced.version}, which it would replace, fail: ${kept.reason}`);
    evidence.push(`the tests of version ${deps.replaced.version} pass`);
  }

  const noticed = await countFailing(skill, broken.copies, deps, signal);
  evidence.push(...noticed.evidence);
  if (noticed.failing === 0)
    return rejected(
      `its tests prove nothing: ${broken.copies.length === 0 ? 'no broken copy could be made' : 'they pass on every broken copy'}`,
    );
  return { passed: true, evidence, reason: '' };
}

/** One id for the same execution in the same try. It holds the tenant, since job ids are not kept apart by tenant. */
function executionId({ scope, digest }: Skill, { attempt = 1 }: VerificationDeps, step: string): string {
  return `verify-${contentDigest([scope.tenant, scope.agent, scope.user, digest]).slice(0, 32)}-${attempt}-${step}`;
}

function ownerOf({ scope: { agent, user } }: Skill): ExecutionRequest['owner'] {
  return { agent, user };
}

async function breakCopies(
  skill: Skill,
  deps: VerificationDeps,
  signal: AbortSignal,
): Promise<{ error: string } | { copies: Array<{ what: string; code: string }> }> {
  const { runs } = await deps.sandboxes.execute(
    {
      executionId: executionId(skill, deps, 'parse'),
      tenant: skill.scope.tenant,
      owner: ownerOf(skill),
      files: [],
      limits: BREAKING_LIMITS,
      stopOnFailure: true,
      runs: [breakingRun(skill.code, skill.entryPoint)],
    },
    signal,
  );
  const run = runs[0];
  if (!run || RETRYABLE_EXITS.has(run.exit))
    throw new EtudeError(
      'SANDBOX_UNAVAILABLE',
      `The sandbox was lost while it parsed skill ${skill.name} (${run?.exit ?? 'no result'}); verify it again.`,
    );
  if (run.exit !== 'ok') return { error: `the code could not be parsed: the parser ended with ${run.exit}` };
  const copies = readBrokenCopies(run.stdout);
  if (copies === null) return { error: 'the code could not be parsed: it is too large' };
  return 'error' in copies ? { error: `the code does not parse: ${copies.error}` } : copies;
}

async function runTests(skill: Skill, trial: Trial, deps: VerificationDeps, signal: AbortSignal): Promise<Outcome> {
  const results: RunResult[] = [];
  for (const [at, evaluator] of evaluatorsOf(trial.tested ?? skill).entries()) {
    const id = executionId(skill, deps, `${trial.step}-${at}`);
    const runs = planRuns(evaluator, trial.code ?? skill.code);
    const request = {
      executionId: id,
      tenant: skill.scope.tenant,
      owner: ownerOf(skill),
      files: [],
      limits: trial.limits ?? LIMITS,
      stopOnFailure: stopOnFailure(evaluator),
      runs,
    };
    const answer = await deps.sandboxes.execute(trial.hashSeed === undefined ? request : { ...request, hashSeed: trial.hashSeed }, signal);
    results.push(...answer.runs);
    const { verdict, reason } = judge(evaluator, runs, answer.runs);
    if (verdict !== 'AC') return { passed: false, reason, results };
  }
  return { passed: true, reason: '', results };
}

function sameResults(first: readonly RunResult[], second: readonly RunResult[]): boolean {
  if (first.length !== second.length) return false;
  return first.every((run, at) => {
    const other = second[at];
    if (run.passed !== undefined) return run.passed === other?.passed;
    if (run.value !== undefined) return sameValue(run.value, other?.value, 0);
    return run.stdout === other?.stdout;
  });
}

async function countFailing(
  skill: Skill,
  copies: ReadonlyArray<{ what: string; code: string }>,
  deps: VerificationDeps,
  signal: AbortSignal,
): Promise<{ failing: number; evidence: string[] }> {
  const survived: string[] = [];
  for (const [at, { what, code }] of copies.entries()) {
    const trial = await runTests(skill, { step: `broken${at + 1}`, code, limits: BROKEN_LIMITS }, deps, signal);
    if (trial.passed) survived.push(what);
  }
  const failing = copies.length - survived.length;
  const evidence = [`its tests fail on ${failing} of ${copies.length} copies broken on purpose`];
  if (survived.length > 0) evidence.push(`not noticed: ${survived.join(', ')}`);
  return { failing, evidence };
}
