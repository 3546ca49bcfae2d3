import { EtudeError } from '@etude/contracts/errors';
import { type CreateNodeOptions, Lexer, parseDocument, type SchemaOptions, stringify, type ToStringOptions } from 'yaml';

const FRONTMATTER_CHARS_MAX = 64 * 2 ** 10;
/** Names, values and signs between them. The parser's time grows with their square, since it compares names with each other. */
const TOKENS_MAX = 4_000;
/** Lists and maps in brackets; deep ones take longer still. */
const BRACKETS_MAX = 200;
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const FRONTMATTER = /^---[^\S\n]*\n([^]*?)\n---[^\S\n]*(?:\n|$)/;

/** Every scalar is a string: the format knows nothing else. */
type Yaml = string | readonly Yaml[] | { readonly [key: string]: Yaml };

/** The format's own fields, and in `others` whatever else there was. */
export interface Frontmatter {
  readonly name: string;
  readonly description: string;
  readonly license?: string;
  readonly compatibility?: string;
  readonly 'allowed-tools'?: string | readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly others?: Readonly<Record<string, Yaml>>;
}

export interface SkillText {
  readonly frontmatter: Frontmatter;
  /** Markdown behind the frontmatter, without the empty line before it. */
  readonly body: string;
}

/**
 * SKILL.md, read as the Agent Skills specification says.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the field; aliases, tags and repeated keys are refused
 */
export function parseSkillText(text: string): SkillText {
  const lines = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  const found = FRONTMATTER.exec(lines);
  if (!found) throw wrong('it must begin with its fields in YAML, between two lines of "---"');
  const { length } = found[1]!;
  if (length > FRONTMATTER_CHARS_MAX) throw wrong(`its fields are ${length} characters long, and ${FRONTMATTER_CHARS_MAX} are the most`);
  return { frontmatter: frontmatterOf(yamlOf(found[1]!)), body: lines.slice(found[0].length).replace(/^\n/, '') };
}

/** A text that says something, of so many characters at most. */
export function isTextOf(value: unknown, max: number): value is string {
  return typeof value === 'string' && value.trim() !== '' && Array.from(value).length <= max;
}

const isTexts = (values: readonly unknown[]) => values.every((value) => typeof value === 'string');

function frontmatterOf(yaml: unknown): Frontmatter {
  if (!isMap(yaml)) throw wrong('its fields must be "name: value" lines');
  const { name, description, license, compatibility, 'allowed-tools': tools, metadata, ...others } = yaml;
  if (!isTextOf(name, 64) || !NAME.test(name))
    throw wrong('field "name": must be small letters, digits and single hyphens between them, at most 64, such as "parse-csv"');
  if (!isTextOf(description, 1_024)) throw wrong('field "description": must be a text of at most 1,024 characters');
  if (license !== undefined && typeof license !== 'string') throw wrong('field "license": must be a text');
  if (compatibility !== undefined && !isTextOf(compatibility, 500))
    throw wrong('field "compatibility": must be a text of at most 500 characters');
  if (tools !== undefined && typeof tools !== 'string' && !(Array.isArray(tools) && isTexts(tools)))
    throw wrong('field "allowed-tools": must be names of tools with blanks between them, or a list of them');
  if (metadata !== undefined && !(isMap(metadata) && isTexts(Object.values(metadata))))
    throw wrong('field "metadata": must map names to texts');
  const given = { license, compatibility, 'allowed-tools': tools, metadata, ...(Object.keys(others).length > 0 ? { others } : {}) };
  const there = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { name, description, ...there };
}

const isMap = (value: unknown): value is Readonly<Record<string, Yaml>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Strings, lists and maps; no value of another type, no alias that could stand for a million others. */
function yamlOf(text: string): unknown {
  try {
    requireSmall(text);
    const document = parseDocument(text, { schema: 'failsafe', merge: false, stringKeys: true, logLevel: 'error' });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) throw problem;
    const yaml: unknown = document.toJS({ maxAliasCount: 0 });
    // The shape of a plain object, and no value of somebody's in its place.
    return JSON.parse(JSON.stringify(yaml), (key, value: unknown) => {
      if (key === '__proto__') throw new Error('"__proto__" is no name of a field');
      return value;
    });
  } catch (error) {
    throw wrong(`its fields are no YAML that could be read: ${(error as Error).message.split('\n')[0]}`);
  }
}

function requireSmall(text: string): void {
  let [tokens, brackets] = [0, 0];
  for (const token of new Lexer().lex(text)) {
    tokens += 1;
    if (tokens > TOKENS_MAX) throw new Error(`they hold more than ${TOKENS_MAX} names, values and signs`);
    if (token === '[' || token === '{') brackets += 1;
    if (brackets > BRACKETS_MAX) throw new Error(`they hold more than ${BRACKETS_MAX} lists and maps in brackets`);
  }
}

/** Every text on one line and in quotes: readers of the format need not know how YAML goes on with a text on the next line. */
const WRITTEN: ToStringOptions & SchemaOptions & CreateNodeOptions = {
  lineWidth: 0,
  doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
  defaultStringType: 'QUOTE_DOUBLE',
  defaultKeyType: 'PLAIN',
  aliasDuplicateObjects: false,
};

export function writeSkillText({ frontmatter, body }: SkillText): string {
  const { others, metadata, ...fields } = frontmatter;
  const yaml = stringify({ ...fields, ...others, ...(metadata ? { metadata } : {}) }, WRITTEN);
  return `---\n${yaml}---\n\n${body}`;
}

export function wrong(why: string): EtudeError {
  return new EtudeError('INVALID_ARGUMENT', `SKILL.md cannot be read: ${why}`);
}
