import { createHash } from 'node:crypto';
import type { SkillProof } from '@etude/contracts/skill-proof';
import type { Skill } from '@etude/contracts/memory';

/** JSON with the keys of every object in order, so that equal content is equal text. Keys that are undefined are left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null);
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${entries.join(',')}}`;
}

/** sha256 over canonical JSON, in hex: the same content has the same digest wherever it was made. */
export function contentDigest(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

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

/**
 * The same for code that is the same but for comments, white space and line ends, and what its entry point is called; of a procedure without
 * code, for the same words. null where there is neither.
 *
 * Texts that differ more may look alike here, too, as where a string holds a "#" or lines are indented otherwise: one mark too many, never one
 * too few.
 */
export function codeDigest({
  code,
  entryPoint,
  kind,
  description,
}: Pick<Skill, 'code' | 'entryPoint' | 'kind' | 'description'>): string | null {
  // A line ends where Python ends it: U+2028 is part of a comment, a carriage return is not.
  const bare = code.replaceAll(/#[^\r\n]*/g, '');
  const dense = (entryPoint === null ? bare : withoutName(bare, entryPoint)).replaceAll(/\s|\\(?=[\r\n])/g, '');
  if (dense !== '') return digestOf(`code\n${dense}`);
  const words = kind === 'procedure' ? description.replaceAll(/\s+/g, ' ').trim() : '';
  return words === '' ? null : digestOf(`words\n${words}`);
}

/** Under another name it is no other code. A name of Python's holds nothing that a pattern would take for more than itself. */
function withoutName(code: string, name: string): string {
  return /^\w+$/.test(name) ? code.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), '_') : code;
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** Whether its tests were made from a task's cases, some of which are hidden, and not by whoever wrote it. */
export function hasHiddenTests({ origin = 'rollout', hiddenTests = false }: Pick<Skill, 'origin' | 'hiddenTests'>): boolean {
  return hiddenTests || origin === 'rollout' || origin === 'consolidation';
}

/** What is signed: all of a proof but the signature, as JSON with its keys in order. */
export function proofText(proof: SkillProof): string {
  return canonicalJson({ ...proof, signature: undefined });
}
