import type { Skill } from '@etude/contracts/memory';
import { createHash } from 'node:crypto';
import { contentDigest } from '../content-digest.js';

type Content = Pick<Skill, 'code' | 'entryPoint' | 'tests'> &
  Partial<Pick<Skill, 'kind' | 'description' | 'parameters' | 'dependencies' | 'packages' | 'files'>>;

/**
 * What is approved when a skill is: code, entry point, declared parameters, tests, dependencies, packages and files; of a procedure in
 * words, its words; and of all but functions, what they are: evidence for what is shown is none for what is called. What is empty is
 * left out. A dependency counts by its name and digest: its content is pinned, not where a copy of
 * it is kept.
 */
export function skillDigest(skill: Content): string {
  const { code, entryPoint, tests, parameters, dependencies, packages, files } = skill;
  if (isInWords(skill))
    return createHash('sha256')
      .update(skill.description ?? '')
      .digest('hex');
  return contentDigest({
    code,
    entryPoint,
    tests,
    parameters: filled(parameters),
    dependencies: filled(dependencies?.map(({ name, digest }) => ({ name, digest })).toSorted((a, b) => compare(a.name, b.name))),
    packages: filled(packages?.toSorted(compare)),
    files: filled(files?.toSorted((a, b) => compare(a.path, b.path))),
    ...(skill.kind === 'procedure' ? { description: skill.description } : {}),
    ...(skill.kind === 'snippet' ? { kind: skill.kind } : {}),
  });
}

/** Nothing in it can be run: a procedure that is its description alone. */
export function isInWords({ kind, code, tests, files = [] }: Pick<Content, 'kind' | 'code' | 'tests' | 'files'>): boolean {
  return kind === 'procedure' && code.trim() === '' && tests.length === 0 && files.length === 0;
}

function filled<T>(items: readonly T[] | undefined): readonly T[] | undefined {
  return items === undefined || items.length === 0 ? undefined : items;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
