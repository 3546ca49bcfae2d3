import { type SkillDraft, SkillDraftSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { SkillName } from '@etude/contracts/ids';
import { Json } from '@etude/contracts/json';
import type { Scope, Skill, SkillTest } from '@etude/contracts/memory';
import { SkillCategory, SkillPackage } from '@etude/contracts/skill-proof';
import { Comparison } from '@etude/contracts/task';
import { newCandidate } from '@etude/domain/skills/life/skill-life';
import { z } from 'zod';
import { fromWire } from '@etude/contracts/wire/messages';
import type { Violation } from '@etude/contracts/wire/validation';

const Identifier = z
  .string()
  .max(200)
  .regex(/^(?:[A-Za-z_][A-Za-z0-9_]*)?$/, 'must be a Python identifier, such as "sum_of_squares"');
const Words = (max: number) => z.string().trim().max(max);
const Tolerance = z.number().min(0, 'must be at least 0');

const TestCase = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('call'),
    args: z.array(Json).default([]),
    kwargs: z.record(z.string(), Json).default({}),
    expected: Json,
    tolerance: Tolerance,
  }),
  z.object({
    kind: z.literal('program'),
    stdin: z.string(),
    expectedStdout: z.string(),
    comparison: Comparison.default('whitespace'),
    tolerance: Tolerance,
  }),
  z.object({ kind: z.literal('python'), setup: z.string(), tests: z.string().regex(/\S/, 'must not be empty') }),
]);
const Tests = z.array(TestCase).max(200);

const Parameter = z
  .object({ name: Identifier, type: Words(200), description: Words(2_000), required: z.boolean(), defaultValue: Json.optional() })
  .refine(({ required, defaultValue }) => !required || defaultValue === undefined, {
    path: ['defaultValue'],
    message: 'is allowed only if the parameter is not required',
  });

const Draft = z.object({
  name: SkillName,
  kind: z.enum(['function', 'snippet', 'procedure']).default('function'),
  displayName: Words(200).optional(),
  description: z.string().trim().min(1, 'must say what the skill does').max(10_000),
  code: z.string().max(400_000),
  entryPoint: Identifier.nullable().default(null),
  isProgram: z.boolean(),
  tags: z.array(z.string().trim().min(1).max(64)).max(50),
  category: SkillCategory.optional(),
  examplePrompts: z.array(z.string().trim().min(1).max(2_000)).max(50).optional(),
  packages: z.array(SkillPackage).max(50).optional(),
  sources: z.array(z.string().trim().min(1).max(300)).max(100),
  model: Words(200).nullable().default(null),
  parameters: z.array(Parameter).max(64),
  tests: Tests,
  heldOutTests: Tests.optional(),
});

export interface CheckedDraft {
  /** A candidate. Its entry point, contract and dependencies are read from the code later. */
  readonly skill: Skill;
  /** The code is a program: it reads stdin, writes stdout and has no entry point. */
  readonly isProgram: boolean;
}

/** @param at ms since 1970 @throws EtudeError INVALID_ARGUMENT naming all wrong fields */
export function checkedDraft(draft: SkillDraft, scope: Scope, at: number): CheckedDraft {
  const author = fromWire(Draft, SkillDraftSchema, draft, { root: 'skill', found: contradictions(draft) });
  const { isProgram, tests, heldOutTests, packages, ...said } = author;
  const skill = newCandidate({
    ...said,
    scope,
    at,
    tests: testsOf(tests),
    tags: [...new Set(author.tags)],
    cues: author.examplePrompts ?? [],
    scripted: false,
    origin: 'person',
    ...(packages && { packages: [...new Set(packages)].toSorted() }),
    ...(heldOutTests && { heldOut: testsOf(heldOutTests) }),
  });
  return { skill, isProgram };
}

function contradictions({ kind, code, entryPoint, isProgram }: SkillDraft): Violation[] {
  const found: Violation[] = [];
  if (kind !== 'procedure' && code.trim() === '') found.push({ field: 'skill.code', description: 'must not be empty' });
  if (code.includes('\0')) found.push({ field: 'skill.code', description: 'must not hold a NUL character' });
  if (isProgram && entryPoint !== '') found.push({ field: 'skill.entry_point', description: 'must be empty for a program (is_program)' });
  return found;
}

const testsOf = (cases: z.output<typeof Tests>): SkillTest[] =>
  cases.map((test) => (test.kind === 'program' ? { ...test, kind: 'io' } : test));
