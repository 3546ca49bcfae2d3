import { createHash } from 'node:crypto';
import type { SkillProof } from '@etude/contracts/skill-proof';
import type { Skill } from '@etude/contracts/memory';

/** JSON with sorted keys, so that equal content is equal text. Keys whose value is undefined are left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null);
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${entries.join(',')}}`;
}

/** Removes duplicates (values of equal content). The last duplicate stays, at the position of the first. */
export function distinct<T>(values: readonly T[]): T[] {
  return [...new Map(values.map((value) => [canonicalJson(value), value])).values()];
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

export function contentDigest(value: unknown): string {
  return digestOf(canonicalJson(value));
}

type Content = Pick<Skill, 'code' | 'entryPoint' | 'tests'> &
  Partial<Pick<Skill, 'kind' | 'description' | 'parameters' | 'dependencies' | 'packages' | 'files'>>;

/** The digest of the content that an approval covers. A dependency's owner doesn't count. A snippet's kind counts, because its code was never run. */
export function skillDigest(skill: Content): string {
  const { code, entryPoint, tests, parameters, dependencies, packages, files } = skill;
  if (isInWords(skill)) return digestOf(skill.description ?? '');
  return contentDigest({
    code,
    entryPoint,
    tests,
    parameters: filled(parameters),
    dependencies: filled(dependencies?.map(({ name, digest }) => ({ name, digest })).toSorted((a, b) => (a.name < b.name ? -1 : 1))),
    packages: filled(packages?.toSorted()),
    files: filled(files?.toSorted((a, b) => (a.path < b.path ? -1 : 1))),
    ...(skill.kind === 'procedure' ? { description: skill.description } : {}),
    ...(skill.kind === 'snippet' ? { kind: skill.kind } : {}),
  });
}

/** Whether the skill is a procedure in words: it has a description and nothing to run. */
export function isInWords({ kind, code, tests, files = [] }: Pick<Content, 'kind' | 'code' | 'tests' | 'files'>): boolean {
  return kind === 'procedure' && code.trim() === '' && tests.length === 0 && files.length === 0;
}

function filled<T>(items: readonly T[] | undefined): readonly T[] | undefined {
  return items === undefined || items.length === 0 ? undefined : items;
}

/**
 * The digest by which copies of code are recognised. null if the skill has neither code nor a description. It ignores comments, white space and the
 * entry point's name. So no copy is missed, though a skill may be marked without need.
 */
export function codeDigest(skill: Pick<Skill, 'code' | 'entryPoint' | 'kind' | 'description'>): string | null {
  const { code, entryPoint, kind, description } = skill;
  // Lines end as in Python: a carriage return ends a comment, but U+2028 doesn't.
  const bare = code.replaceAll(/#[^\r\n]*/g, '');
  const isName = entryPoint !== null && /^\w+$/.test(entryPoint);
  const nameless = isName ? bare.replaceAll(new RegExp(`\\b${entryPoint}\\b`, 'g'), '_') : bare;
  const dense = nameless.replaceAll(/\s|\\(?=[\r\n])/g, '');
  if (dense !== '') return digestOf(`code\n${dense}`);
  const words = kind === 'procedure' ? description.replaceAll(/\s+/g, ' ').trim() : '';
  return words === '' ? null : digestOf(`words\n${words}`);
}

/** Whether the skill's tests come from the cases of a task and not from the skill's author. Some of these cases are hidden. */
export function hasHiddenTests({ origin = 'rollout', hiddenTests = false }: Pick<Skill, 'origin' | 'hiddenTests'>): boolean {
  return hiddenTests || origin === 'rollout' || origin === 'consolidation';
}

/** The signed text of a proof: canonical JSON of all its fields except the signature. */
export function proofText(proof: SkillProof): string {
  return canonicalJson({ ...proof, signature: undefined });
}
