import { EtudeError } from '@etude/contracts/errors';
import { type CreateNodeOptions, Lexer, parseDocument, type SchemaOptions, stringify, type ToStringOptions } from 'yaml';
import { z } from 'zod';
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

/** The fields of a skill that its folder contains. It lacks status, proof, history, uses, readers and held-out tests. */
export type SkillParts = Pick<Skill, (typeof AUTHORED)[number] | 'cues' | 'sources' | 'model' | 'scripted' | 'dependencies' | 'files'> & {
  /** null: the code is a program. Absent: the folder doesn't state it, so it is read from the code. */
  readonly entryPoint?: string | null;
};

const { shape } = Skill;

/** Fields that the format lacks, with their keys in its `metadata`. Fields with `text` are written unchanged, other fields as JSON. */
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

/** Values of fields that a folder doesn't state. A field with this value isn't written. */
export const UNSAID = { parameters: [], tags: [], cues: [], sources: [], model: null, scripted: false } as const;

export const SKILL_TEXT = 'SKILL.md';
export const CASES = 'tests/cases.json';
/** Paths of tests in Python, one file each. They follow the tests in `CASES`. */
export const PYTHON_TEST = /^tests\/test_[^/]*\.py$/;
export const codePath = (name: string) => `scripts/${name}.py`;

/** A skill's name as the format spells it. The name can't always be recovered from it. */
export function formatName(name: string): string {
  return name.replaceAll(/_+/g, '-').slice(0, 64).replace(/-+$/, '');
}

export function skillNameOf(formatted: string): string {
  const name = formatted.replaceAll('-', '_');
  return /^[a-z]/.test(name) ? name : `skill_${name}`;
}

/** The format allows 1 to 1,024 characters. */
export function formatDescription(description: string, name: string): string {
  const text = description.trim();
  if (text === '') return name;
  const characters = Array.from(text);
  return characters.length > 1_024 ? `${characters.slice(0, 1_023).join('').trimEnd()}…` : text;
}

const FRONTMATTER_CHARS_MAX = 64 * 2 ** 10;
/** Maximum number of YAML tokens. The parser compares all names with each other, so its time grows with the square of their number. */
const TOKENS_MAX = 4_000;
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const FRONTMATTER = /^---[^\S\n]*\n([^]*?)\n---[^\S\n]*(?:\n|$)/;

const textOf = (max: number) =>
  z.string().refine((text) => text.trim() !== '' && Array.from(text).length <= max, `must be a text of at most ${max} characters`);

/** The fields of the Agent Skills format. Unknown fields are kept. */
const Frontmatter = z.looseObject(
  {
    name: z
      .string('must be a text')
      .regex(NAME, 'must be small letters, digits and single hyphens between them, such as "parse-csv"')
      .max(64, 'must have at most 64 characters'),
    description: textOf(1_024),
    license: z.string().optional(),
    compatibility: textOf(500).optional(),
    'allowed-tools': z.union([z.string(), z.array(z.string())], 'must be names of tools with blanks between them, or a list').optional(),
    metadata: z.record(z.string(), z.string('must be a text')).optional(),
  },
  'must be "name: value" lines',
);
export type Frontmatter = z.infer<typeof Frontmatter>;

const Kept = Frontmatter.pick({ license: true, compatibility: true, 'allowed-tools': true });

/** Whether the format has this field besides name and description, and allows this value for it. */
export const fitsField = (field: string, value: unknown): boolean =>
  Object.hasOwn(Kept.shape, field) && Kept.safeParse({ [field]: value }).success;

interface SkillText {
  readonly frontmatter: Frontmatter;
  /** The Markdown after the frontmatter, without the empty line before it. */
  readonly body: string;
}

/**
 * Parses a SKILL.md by the Agent Skills specification.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the field; aliases, tags and repeated keys are refused
 */
export function parseSkillText(text: string): SkillText {
  const lines = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  const found = FRONTMATTER.exec(lines);
  if (!found) throw wrong('it must begin with its fields in YAML, between two lines of "---"');
  const { length } = found[1]!;
  if (length > FRONTMATTER_CHARS_MAX) throw wrong(`its fields have ${length} characters; at most ${FRONTMATTER_CHARS_MAX} are allowed`);
  return { frontmatter: frontmatterOf(yamlOf(found[1]!)), body: lines.slice(found[0].length).replace(/^\n/, '') };
}

function frontmatterOf(yaml: unknown): Frontmatter {
  const read = Frontmatter.safeParse(yaml);
  if (read.success) return read.data;
  const [{ path, message } = { path: [], message: '' }] = read.error.issues;
  throw wrong(path.length === 0 ? `its fields ${message}` : `field "${String(path[0])}": ${message}`);
}

/** Parses YAML into strings, lists and maps; every scalar is a string. Refuses aliases, which could expand to millions of values. */
function yamlOf(text: string): unknown {
  try {
    requireSmall(text);
    const document = parseDocument(text, { schema: 'failsafe', merge: false, stringKeys: true, logLevel: 'error' });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) throw problem;
    const yaml: unknown = document.toJS({ maxAliasCount: 0 });
    // Copies plain objects and refuses a "__proto__" that could replace their prototype.
    return JSON.parse(JSON.stringify(yaml), (key, value: unknown) => {
      if (key === '__proto__') throw new Error('"__proto__" is not allowed as a field name');
      return value;
    });
  } catch (error) {
    throw wrong(`its fields are not valid YAML: ${(error as Error).message.split('\n')[0]}`);
  }
}

function requireSmall(text: string): void {
  const tokens = new Lexer().lex(text);
  for (let count = 0; !tokens.next().done; count++)
    if (count >= TOKENS_MAX) throw new Error(`they hold more than ${TOKENS_MAX} names, values and signs`);
}

/** Writes every text on one line in quotes, because simple readers don't support YAML's multi-line texts. */
const WRITTEN: ToStringOptions & SchemaOptions & CreateNodeOptions = {
  lineWidth: 0,
  doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
  defaultStringType: 'QUOTE_DOUBLE',
  defaultKeyType: 'PLAIN',
  aliasDuplicateObjects: false,
};

export function writeSkillText({ frontmatter, body }: SkillText): string {
  const yaml = stringify(frontmatter, WRITTEN);
  return `---\n${yaml}---\n\n${body}`;
}

export function wrong(why: string): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `SKILL.md cannot be read: ${why}`);
}
