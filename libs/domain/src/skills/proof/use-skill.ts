import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ExecutionRequest, RunResult, SandboxFile, SandboxRun } from '@etude/contracts/sandbox';
import { SandboxLimits, SHOWN_VALUE } from '@etude/contracts/sandbox';
import { crashOf } from '../../evaluation/evaluator.js';
import { LIMIT_VERDICTS, refuseUnfinished } from '../../evaluation/judge.js';
import type { Clock } from '../../ports/clock.js';
import type { MemoryOutbox, SkillVersions } from '../../ports/memory.js';
import type { ProofChecker } from '../../ports/verification.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { bundledCode } from './bundle-code.js';
import { neededSkills } from '../life/call-graph.js';
import { contentDigest, isInWords } from '../content-digest.js';
import { findSkill, type SkillReader } from '../life/find-skill.js';
import { fixedFor } from '../life/merged-skills.js';
import { countWordsUsed } from '../life/told-procedure.js';
import { isProven } from './proof.js';
import { noteOfPlainValue, placedArguments, plainValue, requireCallable, validateArguments } from './call-values.js';
import { useOf } from '../life/usage.js';

export interface SkillCall {
  readonly reader: SkillReader;
  readonly name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Standard input of a program. A function takes none. */
  readonly stdin?: string;
  /** Files that lie beside the skill when it runs. */
  readonly files?: readonly SandboxFile[];
  /** A repeated use with this id and the same input is run and counted once. */
  readonly useId: string;
  /** Claims `useId` for this call, after all checks. Absent if no other call can have this id. */
  readonly claim?: () => Promise<unknown>;
}

export interface UseSkillDeps {
  readonly procedural: SkillVersions;
  readonly sandboxes: Sandboxes;
  readonly outbox: MemoryOutbox;
  readonly checker: ProofChecker;
  readonly clock: Clock;
  /** The limits of a use. Default: those of `SandboxLimits`. */
  readonly limits?: SandboxLimits;
  /** Returns the kind of sandbox that has these packages, or throws if no kind has them. If absent, the default kind is used. */
  readonly templateFor?: (packages: readonly string[]) => string | undefined;
}

export interface SkillUse {
  readonly success: boolean;
  readonly name: string;
  readonly version: number;
  /** The function's return value as plain JSON. null for a program, and after a failure. */
  readonly result: unknown;
  /** Says how `result` writes numbers and texts that differ from the returned ones. Empty if there are no differences. */
  readonly resultNote: string;
  readonly output: string;
  /** Empty if the use succeeded. */
  readonly error: string;
  readonly durationMs: number;
}

const TEXT_MAX = 4_000;
const REASON_MAX = 300;

/**
 * Runs an active skill with these arguments and counts the use. No model is asked. A procedure in words answers with its words. If the named skill
 * was merged into another skill, the other skill runs with the arguments that make it do the same. Returns null if there is no such skill.
 *
 * An error of the code or an exceeded limit is a normal outcome. @throws EtudeError INVALID_ARGUMENT, which names each wrong argument;
 * FAILED_PRECONDITION if the skill is not active or can't be called, or if it or a needed skill has other code than its proof covers;
 * SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, MEMORY_UNAVAILABLE, QUEUE_UNAVAILABLE, CANCELLED
 */
export async function useSkill(call: SkillCall, deps: UseSkillDeps, signal: AbortSignal): Promise<SkillUse | null> {
  const skill = await findSkill(deps.procedural, call.reader, call.name);
  if (skill === null) return whyNotActive(call, deps);
  if (isInWords(skill)) return useWords(skill, call, deps);
  if (!isProven(skill, deps.checker)) {
    const message = `${skill.name}@${skill.version} has no valid proof for its code; verify it again before it is used.`;
    throw new EtudeError('FAILED_PRECONDITION', message);
  }
  const { needed, ...place } = await loadedWith(skill, deps);
  const parameters = { ...fixedFor(skill, call.name), ...call.parameters };
  const { run, input: given } = executableOf(skill, { ...call, parameters }, bundledCode(skill.code, needed, skill.dependencies));
  const { files = [] } = call;
  const input = files.length === 0 ? given : { input: given, files: contentDigest(files) };
  await call.claim?.();
  const result = await execute(skill, { run, input, ...place }, call, deps, signal);
  const error = errorOf(result, run);
  const { tenant, agent, user } = call.reader;
  // Tenants share one space of job ids, so the id is made from the tenant too.
  const writeId = `use-${contentDigest({ tenant, agent, user, useId: call.useId })}`;
  const use = useOf(skill, { tenant, agent, user }, outcomeOf({ result, error, input, at: deps.clock.now() }));
  await deps.outbox.put(tenant, writeId, use);
  return {
    success: error === '',
    name: skill.name,
    version: skill.version,
    result: error === '' && result.value !== undefined ? plainValue(result.value) : null,
    resultNote: error === '' ? noteOfPlainValue(result.value) : '',
    output: result.stdout,
    error,
    durationMs: result.wallMs,
  };
}

/** Returns the words as output. A caller that asks for them by name counts as following them. @throws EtudeError INVALID_ARGUMENT for arguments */
async function useWords(skill: Skill, call: SkillCall, deps: UseSkillDeps): Promise<SkillUse> {
  const { name, version, description: output } = skill;
  const { reader, parameters, stdin = '', useId } = call;
  const field = Object.keys(parameters).length > 0 ? 'parameters' : 'stdin';
  if (field === 'parameters' || stdin !== '')
    throw new EtudeError('INVALID_ARGUMENT', `${name} is a procedure in words: it takes no ${field}.`, { field });
  await call.claim?.();
  await countWordsUsed(deps, reader, { names: [`${name}@${version}`], success: true, useId, at: deps.clock.now() });
  return { success: true, name, version, result: null, resultNote: '', output, error: '', durationMs: 0 };
}

/** Throws if the skill exists but isn't active. If it returned null then, the caller would request the skill again. */
async function whyNotActive({ reader, name }: SkillCall, { procedural }: UseSkillDeps): Promise<null> {
  const known = await findSkill(procedural, reader, name, { status: 'any' });
  if (known === null) return null;
  const { status, statusReason } = known;
  const why = status === 'rejected' && statusReason !== '' ? ` It was rejected: ${statusReason.slice(0, REASON_MAX)}` : '';
  throw new EtudeError('FAILED_PRECONDITION', `Skill ${name} is ${status}, and only active skills are run.${why}`);
}

/**
 * The skills that a skill needs, in the order of loading. `template` is the kind of sandbox with all their packages; absent means the default kind.
 *
 * @throws EtudeError FAILED_PRECONDITION as `neededSkills` does, and if no sandbox has the packages
 */
export async function loadedWith(
  skill: Pick<Skill, 'name' | 'scope' | 'dependencies' | 'packages'>,
  { procedural, checker, templateFor }: Pick<UseSkillDeps, 'procedural' | 'checker' | 'templateFor'>,
): Promise<{ readonly needed: readonly Skill[]; readonly template?: string }> {
  const needed = await neededSkills(procedural, skill, (one) => isProven(one, checker));
  const packages = [...new Set([skill, ...needed].flatMap((one) => one.packages ?? []))];
  const template = packages.length === 0 ? undefined : templateFor?.(packages);
  return template === undefined ? { needed } : { needed, template };
}

/** The run of a use. `input` is its arguments or its standard input, for digests and for reports of failures. */
function executableOf(skill: Skill, { parameters, stdin = '' }: SkillCall, code: string): { run: SandboxRun; input: unknown } {
  requireCallable(skill);
  const { name, entryPoint } = skill;
  const wrong = (field: string, why: string) => new EtudeError('INVALID_ARGUMENT', `${name} is ${why}`, { field });
  if (entryPoint !== null) {
    if (stdin !== '') throw wrong('stdin', 'a function: it reads no standard input; give it parameters.');
    const given = validateArguments(skill, parameters);
    return { run: { kind: 'call', code, entryPoint, ...placedArguments(skill, given), ...SHOWN_VALUE }, input: given };
  }
  if (Object.keys(parameters).length === 0) return { run: { kind: 'program', code, stdin }, input: { stdin } };
  throw wrong('parameters', 'a program: it takes no parameters, and reads its standard input.');
}

async function execute(
  skill: Skill,
  { run, input, template }: ReturnType<typeof executableOf> & Pick<ExecutionRequest, 'template'>,
  { reader, useId, files = [] }: SkillCall,
  { sandboxes, limits }: UseSkillDeps,
  signal: AbortSignal,
): Promise<RunResult> {
  const { tenant, agent, user } = reader;
  const { runs } = await sandboxes.execute(
    {
      executionId: `use-${contentDigest({ tenant, agent, user, useId, name: skill.name, input })}`,
      tenant,
      owner: { agent, user },
      files: [...files],
      limits: limits ?? SandboxLimits.parse({}),
      stopOnFailure: false,
      runs: [run],
      ...(template === undefined ? {} : { template }),
    },
    signal,
  );
  refuseUnfinished(1, runs);
  return runs[0]!;
}

/** Why a use failed, in one or two lines. Empty if the use succeeded. */
function errorOf(result: RunResult, { kind }: SandboxRun): string {
  const [, limit] = LIMIT_VERDICTS[result.exit] ?? [];
  if (limit !== undefined) return `it ${limit}`;
  if (result.exit === 'ok' && !result.error && (kind !== 'call' || result.value !== undefined)) return '';
  const { type, message, line, summary } = crashOf(result);
  const where = line === null ? '' : `, line ${line}`;
  return (type === null ? summary : `${type}: ${message}${where}`).slice(0, TEXT_MAX);
}

function outcomeOf({ result, error, input, at }: { result: RunResult; error: string; input: unknown; at: number }) {
  const success = error === '';
  const failure = success ? {} : { failure: { input: JSON.stringify(input).slice(0, TEXT_MAX), error } };
  return { success, at, inputDigest: contentDigest(input), ...outputDigestOf(result, success), ...failure };
}

/**
 * The digest of the output that the same input should give again: value and printed text, or the type of the code's exception. The digest omits the
 * exception's message, which may hold addresses. A limit or a kill gives no digest, because a busy machine may be the cause.
 */
function outputDigestOf(result: RunResult, success: boolean): { outputDigest?: string } {
  if (success) return { outputDigest: contentDigest({ value: result.value ?? null, stdout: result.stdout }) };
  const { type } = crashOf(result);
  return type === null || result.exit in LIMIT_VERDICTS ? {} : { outputDigest: contentDigest({ error: type }) };
}
