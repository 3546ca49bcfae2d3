import { toJson } from '@bufbuild/protobuf';
import { type ListValue, ListValueSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { SkillParameter as ParameterMessage, SkillDraft, SkillTestCase } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillName } from '@etude/contracts/ids';
import { hasUnnameable, UNNAMEABLE } from '@etude/contracts/json';
import type { Scope, Skill, SkillTest } from '@etude/contracts/memory';
import { SkillCategory, SkillPackage } from '@etude/contracts/skill-proof';
import { skillDigest } from '@etude/domain/skills/content-digest';
import { z } from 'zod';
import { invalidField, refuseAny, snakeCase, type Violation, violationsOf } from '../wire/validation.js';

const TESTS_MAX = 200;
/** All tests of a draft together, as JSON. */
const TESTS_MAX_CHARS = 1_000_000;

const Identifier = z
  .string()
  .max(200)
  .regex(/^(?:[A-Za-z_][A-Za-z0-9_]*)?$/, 'must be a name of Python, such as "sum_of_squares"');
const Words = (max: number) => z.string().trim().max(max);
const Tests = z.array(z.unknown()).max(TESTS_MAX);

/** Sizes and shapes of what an author writes. */
const Draft = z.object({
  name: SkillName,
  kind: z.enum(['function', 'snippet', 'procedure']),
  displayName: Words(200),
  description: z.string().trim().min(1, 'must say what the skill does').max(10_000),
  code: z.string().max(400_000),
  entryPoint: Identifier,
  tags: z.array(z.string().trim().min(1).max(64)).max(50),
  category: z.union([z.literal(''), SkillCategory]),
  examplePrompts: z.array(z.string().trim().min(1).max(2_000)).max(50),
  packages: z.array(SkillPackage).max(50),
  sources: z.array(z.string().trim().min(1).max(300)).max(100),
  model: Words(200),
  parameters: z.array(z.object({ name: Identifier, type: Words(200), description: Words(2_000) })).max(64),
  tests: Tests,
  heldOutTests: Tests,
});

export interface CheckedDraft {
  /** A candidate. Its entry point, contract and dependencies are read from its code later. */
  readonly skill: Skill;
  /** It reads stdin and writes stdout, and has no entry point. */
  readonly isProgram: boolean;
}

/**
 * A candidate of what its author wrote.
 *
 * @param scope whose it will be
 * @param at ms since 1970
 * @throws EtudeError INVALID_ARGUMENT naming every field that is wrong
 */
export function checkedDraft(draft: SkillDraft, scope: Scope, at: number): CheckedDraft {
  const given = { ...draft, kind: draft.kind || 'function' };
  const parsed = Draft.safeParse(given);
  const found: Violation[] = parsed.success ? [] : [...violationsOf(parsed.error, Draft, 'skill', stepOf)];
  const parameters = draft.parameters.map((parameter, index) => parameterOf(parameter, `skill.parameters[${index}]`, found));
  const tests = testsOf(draft.tests, 'skill.tests', found);
  const heldOut = testsOf(draft.heldOutTests, 'skill.held_out_tests', found);
  found.push(...contradictions(given));
  refuseAny(found);
  const author = parsed.data!;
  const { category, displayName, examplePrompts, packages } = author;
  const skill: Omit<Skill, 'digest'> = {
    name: author.name,
    version: 1,
    scope,
    kind: author.kind,
    description: author.description,
    code: author.code,
    entryPoint: author.entryPoint === '' ? null : author.entryPoint,
    parameters,
    tests,
    tags: [...new Set(author.tags)],
    cues: examplePrompts,
    fingerprints: [],
    status: 'candidate',
    statusReason: '',
    evidence: [],
    sources: author.sources,
    model: author.model === '' ? null : author.model,
    scripted: false,
    executionCount: 0,
    successRate: 1,
    createdAt: at,
    updatedAt: at,
    origin: 'person',
    ...(displayName === '' ? {} : { displayName }),
    ...(category === '' ? {} : { category }),
    ...(examplePrompts.length === 0 ? {} : { examplePrompts }),
    ...(packages.length === 0 ? {} : { packages: [...new Set(packages)].toSorted() }),
    ...(heldOut.length === 0 ? {} : { heldOut }),
  };
  return {
    skill: { ...skill, digest: skillDigest(skill) },
    isProgram: draft.isProgram,
  };
}

const stepOf = (path: readonly PropertyKey[], index: number) => snakeCase(String(path[index]));

function contradictions({
  kind,
  code,
  entryPoint,
  isProgram,
}: Pick<SkillDraft, 'kind' | 'code' | 'entryPoint' | 'isProgram'>): Violation[] {
  const found: Violation[] = [];
  if (kind !== 'procedure' && code.trim() === '') found.push({ field: 'skill.code', description: 'must not be empty' });
  if (code.includes('\0')) found.push({ field: 'skill.code', description: 'must not hold a NUL character' });
  if (isProgram && entryPoint !== '')
    found.push({ field: 'skill.entry_point', description: 'goes with a function; a program (is_program) has none' });
  return found;
}

function parameterOf({ name, type, description, required, defaultValue }: ParameterMessage, field: string, found: Violation[]) {
  if (defaultValue === undefined) return { name, type, description, required };
  if (required) found.push({ field: `${field}.default_value`, description: 'goes with a parameter that is not required' });
  return { name, type, description, required, defaultValue: jsonOf(defaultValue, `${field}.default_value`, found) as null };
}

function testsOf(cases: readonly SkillTestCase[], field: string, found: Violation[]): SkillTest[] {
  if (cases.length > TESTS_MAX) return [];
  const tests = cases.flatMap((one, index) => testOf(one, `${field}[${index}]`, found) ?? []);
  const size = JSON.stringify(tests).length;
  if (size > TESTS_MAX_CHARS) throw invalidField(field, `must not have more than ${TESTS_MAX_CHARS} characters as JSON; it has ${size}`);
  return tests;
}

function testOf({ test }: SkillTestCase, field: string, found: Violation[]): SkillTest | null {
  switch (test.case) {
    case 'call': {
      const { args, kwargs, expected, tolerance } = test.value;
      const at = `${field}.call`;
      checkTolerance(tolerance, at, found);
      if (hasUnnameable(kwargs)) found.push({ field: `${at}.kwargs.${UNNAMEABLE}`, description: 'is no name of an argument' });
      if (expected === undefined) found.push({ field: `${at}.expected`, description: 'is required; write null as null_value' });
      const call = {
        args: listOf(args, `${at}.args`, found),
        kwargs: kwargs ?? {},
        expected: expected ? jsonOf(expected, `${at}.expected`, found) : null,
      };
      return { kind: 'call', tolerance, ...call } as SkillTest;
    }
    case 'program': {
      const { stdin, expectedStdout, tolerance } = test.value;
      const comparison = test.value.comparison || 'whitespace';
      checkTolerance(tolerance, `${field}.program`, found);
      if (!isComparison(comparison))
        found.push({ field: `${field}.program.comparison`, description: 'must be "whitespace", "exact" or "numeric"' });
      return { kind: 'io', stdin, expectedStdout, comparison: isComparison(comparison) ? comparison : 'exact', tolerance };
    }
    case 'python': {
      const { setup, tests } = test.value;
      if (tests.trim() === '') found.push({ field: `${field}.python.tests`, description: 'must not be empty' });
      return { kind: 'python', setup, tests };
    }
    default:
      found.push({ field, description: 'must be a call, a program or python' });
      return null;
  }
}

const isComparison = (text: string): text is 'whitespace' | 'exact' | 'numeric' => ['whitespace', 'exact', 'numeric'].includes(text);

function checkTolerance(tolerance: number, field: string, found: Violation[]): void {
  if (!(tolerance >= 0 && Number.isFinite(tolerance))) found.push({ field: `${field}.tolerance`, description: 'must be at least 0' });
}

function jsonOf(value: Value, field: string, found: Violation[]): unknown {
  try {
    return toJson(ValueSchema, value);
  } catch {
    found.push({ field, description: 'must be JSON: every value set, numbers finite' });
    return null;
  }
}

function listOf(list: ListValue | undefined, field: string, found: Violation[]): unknown {
  if (list === undefined) return [];
  try {
    return toJson(ListValueSchema, list);
  } catch {
    found.push({ field, description: 'must be JSON: every value set, numbers finite' });
    return [];
  }
}
