import { Skill } from '@etude/contracts/memory';

/**
 * What a folder says of a skill: all that its author wrote. What an installation found out or decided about it (its status, proof,
 * history, uses, readers, held-out tests) stays there.
 */
export type SkillParts = Pick<
  Skill,
  | 'name'
  | 'kind'
  | 'description'
  | 'code'
  | 'parameters'
  | 'tests'
  | 'hiddenTests'
  | 'tags'
  | 'cues'
  | 'sources'
  | 'model'
  | 'scripted'
  | 'displayName'
  | 'category'
  | 'examplePrompts'
  | 'dependencies'
  | 'packages'
  | 'files'
  | 'metadata'
> & {
  /** null: a program. Absent: the folder does not say, so it is read from the code. */
  readonly entryPoint?: string | null;
};

const { shape } = Skill;

/** Fields that the format has no place for, under their keys in its `metadata`. Texts as they are, everything else as JSON. */
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

/** What a skill has in these fields where a folder says nothing; such values are not written. */
export const UNSAID = { parameters: [], tags: [], cues: [], sources: [], model: null, scripted: false } as const;

export const SKILL_TEXT = 'SKILL.md';
export const CASES = 'tests/cases.json';
/** Tests as Python, one file each; they follow those of `CASES`. */
export const PYTHON_TEST = /^tests\/test_[^/]*\.py$/;
export const codePath = (name: string) => `scripts/${name}.py`;

/** A name as the format has it. Not every name of a skill can be told from it again. */
export function formatName(name: string): string {
  return name.replaceAll(/_+/g, '-').slice(0, 64).replace(/-+$/, '');
}

/** The name of a skill for a name of the format. */
export function skillNameOf(formatted: string): string {
  const name = formatted.replaceAll('-', '_');
  return /^[a-z]/.test(name) ? name : `skill_${name}`;
}

/** A description as the format has it: at most 1,024 characters, and not empty. */
export function formatDescription(description: string, name: string): string {
  const text = description.trim();
  if (text === '') return name;
  const characters = Array.from(text);
  return characters.length > 1_024 ? `${characters.slice(0, 1_023).join('').trimEnd()}…` : text;
}
