import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { parseEntries, type Problem, readEntries, specOf } from './problems.js';

/**
 * `house_rule`: no task states its rule, only references do. `procedure`: one function under several names. `distractor`: the words of
 * another family, with a rule of its own.
 */
export const KINDS = ['house_rule', 'procedure', 'distractor'] as const;
export type Kind = (typeof KINDS)[number];

export interface FamilyProblem extends Problem {
  readonly family: string;
  readonly familyKind: Kind;
  /** From 1. */
  readonly round: number;
}

const Line = z.looseObject({
  id: z.string().min(1),
  family: z.string().trim().min(1).max(64),
  kind: z.enum(KINDS),
  /** Default: the problem's place among its family's lines. */
  round: z.int().min(1).max(1_000).optional(),
});

export const parseFamilies = (text: string, path?: string): FamilyProblem[] => parseEntries(reader(), text, path);
export const readFamilies = (path: string): FamilyProblem[] => readEntries(reader(), path);

/** Reads lines in their order, since a line without a round gets the next one of its family. */
function reader(): (entry: unknown) => FamilyProblem {
  const known = new Map<string, FamilyProblem>();
  return (entry) => {
    const { id, family, kind: familyKind, round, ...spec } = Line.parse(entry);
    const before = known.get(family);
    if (before && before.familyKind !== familyKind) throw new Error(`kind: ${family} has the kind ${before.familyKind} in ${before.id}`);
    const problem = { id, family, familyKind, round: round ?? (before?.round ?? 0) + 1, spec: specOf(spec) };
    known.set(family, problem);
    return problem;
  };
}

/** The problems of each round from 1 on. @throws CliError if a family has none for a round */
export function roundsOf(problems: readonly FamilyProblem[], count: number): FamilyProblem[][] {
  const families = new Set(problems.map(({ family }) => family));
  return Array.from({ length: count }, (_, at) => {
    const round = problems.filter((problem) => problem.round === at + 1);
    const missing = [...families].find((family) => !round.some((problem) => problem.family === family));
    if (missing === undefined) return round;
    throw new CliError(EXIT.usage, `the family ${missing} has no problem for round ${at + 1}`, [`pass --rounds ${at}, or add a line`]);
  });
}
