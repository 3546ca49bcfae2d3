import { Buffer } from 'node:buffer';
import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { RETRYABLE_EXITS, type ExecutionRequest, SandboxLimits } from '@etude/contracts/sandbox';
import { SkillContract } from '@etude/contracts/skill-proof';
import { parsedJson } from '@etude/contracts/json';
import { z } from 'zod';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { pythonProgram } from '../../python-files.js';
import { contentDigest } from '../content-digest.js';

const INSPECT_PROGRAM = pythonProgram('inspect_skill', ['top_level', 'contract', 'mutants']);

/** The size limit of a skill's code. A skill is one tool, not a library, and each mutant is a copy of the whole code. */
const CODE_MAX_BYTES = 256 * 1024;
/** The most mutants of one skill. A mutant is a copy of the code that is broken in one place. */
export const MUTANTS_MAX = 16;
/** Parsing takes milliseconds. Code that needs seconds is meant to block the parser. */
const LIMITS = SandboxLimits.parse({ outputKiB: 16_384, cpuMs: 5_000, wallMs: 10_000, memoryMiB: 512 });

const CodeProblem = z.strictObject({
  /** Number of the line, from 1. null if the problem concerns the whole code. */
  line: z.number().int().nullable(),
  message: z.string(),
});
type CodeProblem = z.infer<typeof CodeProblem>;

const Mutant = z.strictObject({
  /** The change, such as "line 3: a < b became a <= b". */
  what: z.string(),
  code: z.string(),
});
export type Mutant = z.infer<typeof Mutant>;

const InspectedCode = z.strictObject({
  /** A `function` is called by its entry point. A `program` is run whole. A `snippet` is shown and never run, for the reason in `note`. */
  kind: z.enum(['function', 'program', 'snippet']),
  /** null for a program, and for a snippet without an entry point. */
  entryPoint: z.string().nullable(),
  contract: SkillContract,
  /** Names of the skills that the code calls. */
  uses: z.array(z.string()),
  note: z.string(),
  mutants: z.array(Mutant),
});
export type InspectedCode = z.infer<typeof InspectedCode>;

const Inspection = z.union([z.strictObject({ problems: z.array(CodeProblem).min(1) }), InspectedCode]);
export type Inspection = z.infer<typeof Inspection>;

export interface InspectionRequest {
  readonly code: string;
  /** Name of the function to call. Empty or null means the only function at the top level, or the function with the skill's name. */
  readonly entryPoint: string | null;
  readonly name?: string;
  /** Whether the code is run as a whole, and may do things when it is loaded. */
  readonly isProgram?: boolean;
  readonly mutantsMax?: number;
}

interface InspectionPlace extends Pick<ExecutionRequest, 'tenant' | 'owner'> {
  readonly sandboxes: Sandboxes;
  /** Default: a digest of the request, so that equal requests are executed once. */
  readonly executionId?: string;
}

/** Reads the code with Python's own parser, in one execution of a sandbox. The code is never run. */
export async function inspectCode(
  { code, entryPoint, name = '', isProgram = false, mutantsMax = 0 }: InspectionRequest,
  { sandboxes, tenant, owner, executionId }: InspectionPlace,
  signal: AbortSignal = new AbortController().signal,
): Promise<Inspection> {
  const bytes = Buffer.byteLength(code, 'utf8');
  if (bytes > CODE_MAX_BYTES) return whole(`it has ${bytes} bytes; a skill has at most ${CODE_MAX_BYTES}`);
  if (code.trim() === '') return whole('it is empty');
  const stdin = JSON.stringify({ code, entryPoint, name, isProgram, mutantsMax });
  const request: ExecutionRequest = {
    executionId: executionId ?? `inspect-${contentDigest([tenant, owner ?? null, stdin]).slice(0, 40)}`,
    tenant,
    ...(owner === undefined ? {} : { owner }),
    files: [],
    limits: LIMITS,
    stopOnFailure: true,
    runs: [{ kind: 'program', code: INSPECT_PROGRAM, stdin }],
  };
  const answer = await sandboxes.execute(request, signal);
  const run = answer.runs[0];
  if (!run || RETRYABLE_EXITS.has(run.exit) || run.exit === 'cancelled') {
    const lost = `The sandbox was lost while it parsed the code (${run?.exit ?? 'no result'}); send the request again.`;
    throw new EtudeError('SANDBOX_UNAVAILABLE', lost);
  }
  if (run.exit !== 'ok') return whole(`it could not be parsed: the parser ended with ${run.exit}; make it smaller or less deeply nested`);
  const parsed = Inspection.safeParse(parsedJson(run.stdout));
  return parsed.success ? parsed.data : whole('it could not be parsed: the answer of the parser is too large; make the code smaller');
}

const whole = (message: string): Inspection => ({ problems: [{ line: null, message }] });

/** One text per problem, such as "line 3: it runs print(x) when it is loaded; …". */
export function problemTexts(problems: readonly CodeProblem[]): string[] {
  return problems.map(({ line, message }) => (line === null ? message : `line ${line}: ${message}`));
}

export function undeclaredProblems(declared: Skill['parameters'], { parameters, inputSchema }: SkillContract): string[] {
  if (declared.length === 0) return [];
  const problems = declared.flatMap(({ name, required }) => {
    const known = parameters.find((one) => one.name === name);
    if (known === undefined)
      return inputSchema['additionalProperties'] === false ? [`parameter "${name}": the code has no such parameter`] : [];
    return !required && known.required ? [`parameter "${name}": it is declared as optional, but the code has no default for it`] : [];
  });
  const named = new Set(declared.map(({ name }) => name));
  const missed = parameters.filter(({ name, required }) => required && !named.has(name));
  return [...problems, ...missed.map(({ name }) => `parameter "${name}": the code requires it, but it is not declared`)];
}
