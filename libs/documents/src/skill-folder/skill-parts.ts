import { Skill } from '@etude/contracts/memory';

export const AUTHORED = [
  'name',
  'kind',
  'description',
  'code',
  'tests',
  'hiddenTests',
  'metadata',
  'parameters',
  'tags',
  'displayName',
  'category',
  'examplePrompts',
  'packages',
] as const satisfies ReadonlyArray<keyof Skill>;

/**
 * The fields of a skill that a folder holds. What an installation learned or decided about the skill (status, proof, history, uses,
 * readers, held-out tests) stays in the installation.
 */
export type SkillParts = Pick<Skill, (typeof AUTHORED)[number] | 'cues' | 'sources' | 'model' | 'scripted' | 'dependencies' | 'files'> & {
  /** null: the code is a program. Absent: the folder doesn't state it, so it is read from the code. */
  readonly entryPoint?: string | null;
};

const { shape } = Skill;

/** Fields that the format lacks, with their keys in its `metadata`. Fields with `text` are written unchanged, others as JSON. */
export const ETUDE_FIELDS = [
  { key: 'etude-display-name', field: 'displayName', schema: shape.displayName.unwrap(), text: true },
  { key: 'etude-category', field: 'category', schema: shape.category.unwrap(), text: true },
  { key: 'etude-model', field: 'model', schema: shape.model.unwrap(), text: true },
  { key: 'etude-hidden-tests', field: 'hiddenTests', schema: shape.hiddenTests.unwrap(), text: false },
  { key: 'etude-scripted', field: 'scripted', schema: shape.scripted, text: false },
  { key: 'etude-parameters', field: 'parameters', schema: shape.parameters.unwrap(), text: false },
  { key: 'etude-tags', field: 'tags', schema: shape.tags.unwrap(), text: false },
  { key: 'etude-cues', field: 'cues', schema: shape.cues, text: false },
  { key: 'etude-sources', field: 'sources', schema: shape.sources, text: false },
  { key: 'etude-example-prompts', field: 'examplePrompts', schema: shape.examplePrompts.unwrap(), text: false },
  { key: 'etude-dependencies', field: 'dependencies', schema: shape.dependencies.unwrap(), text: false },
  { key: 'etude-packages', field: 'packages', schema: shape.packages.unwrap(), text: false },
] as const satisfies readonly { key: string; field: keyof SkillParts; schema: unknown; text: boolean }[];

/** Values of these fields where a folder doesn't state them. Such values are not written. */
export const UNSAID = { parameters: [], tags: [], cues: [], sources: [], model: null, scripted: false } as const;

export const SKILL_TEXT = 'SKILL.md';
export const CASES = 'tests/cases.json';
/** Paths of tests in Python, one file each. They follow the tests in `CASES`. */
export const PYTHON_TEST = /^tests\/test_[^/]*\.py$/;
export const codePath = (name: string) => `scripts/${name}.py`;

/** A skill's name in the format. Not every name can be recovered from it. */
export function formatName(name: string): string {
  return name.replaceAll(/_+/g, '-').slice(0, 64).replace(/-+$/, '');
}

export function skillNameOf(formatted: string): string {
  const name = formatted.replaceAll('-', '_');
  return /^[a-z]/.test(name) ? name : `skill_${name}`;
}

/** A description in the format: at most 1,024 characters, and not empty. */
export function formatDescription(description: string, name: string): string {
  const text = description.trim();
  if (text === '') return name;
  const characters = Array.from(text);
  return characters.length > 1_024 ? `${characters.slice(0, 1_023).join('').trimEnd()}…` : text;
}
