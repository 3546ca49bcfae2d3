import { isDeeper } from '@etude/contracts/json';
import { Skill } from '@etude/contracts/memory';
import type { z } from 'zod';
import type { FolderFile } from './file-collector.js';
import {
  CASES,
  codePath,
  ETUDE_FIELDS,
  formatDescription,
  formatName,
  type Frontmatter,
  parseSkillText,
  PYTHON_TEST,
  SKILL_TEXT,
  skillNameOf,
  type SkillParts,
  UNSAID,
  wrong,
} from './skill-format.js';

/**
 * Reads the fields of a skill from its folder, all but `files`.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the file and the field
 */
export function saidIn(files: readonly FolderFile[]): SkillParts {
  const { frontmatter, body } = parseSkillText(textOf(files, SKILL_TEXT));
  const { metadata = {} } = frontmatter;
  const name = nameIn(frontmatter);
  const kind = parsed('etude-kind', Skill.shape.kind, metadata['etude-kind'] ?? 'procedure');
  const entryPoint = entryPointIn(metadata, kind);
  const rest = metadataOf(frontmatter);
  return {
    ...UNSAID,
    ...fieldsIn(metadata),
    name,
    kind,
    description: descriptionIn(frontmatter, name),
    code: kind === 'procedure' ? body : textOf(files, codePath(name)),
    ...(entryPoint === undefined ? {} : { entryPoint }),
    tests: testsIn(files),
    ...(Object.keys(rest).length > 0 ? { metadata: rest } : {}),
  } as SkillParts;
}

export function extrasOf(files: readonly FolderFile[], { name, kind }: Pick<SkillParts, 'name' | 'kind'>): FolderFile[] {
  const own = [SKILL_TEXT, CASES, ...(kind === 'procedure' ? [] : [codePath(name)])];
  return files.filter(({ path }) => !own.includes(path));
}

/** Refuses an `etude-name` that doesn't match the format's name, so that all readers see the same skill. */
function nameIn({ name, metadata = {} }: Frontmatter): string {
  const own = metadata['etude-name'];
  if (own !== undefined && formatName(own) !== name)
    throw wrong(`metadata "etude-name": ${JSON.stringify(own)} doesn't match the name ${JSON.stringify(name)}`);
  return parsed('etude-name', Skill.shape.name, own ?? skillNameOf(name));
}

function descriptionIn({ description, metadata = {} }: Frontmatter, name: string): string {
  const own = metadata['etude-description'];
  if (own === undefined) return description;
  if (formatDescription(own, name) !== description) throw wrong('metadata "etude-description": must begin with the text of "description"');
  return own;
}

function entryPointIn(metadata: Readonly<Record<string, string>>, kind: Skill['kind']): string | null | undefined {
  const own = metadata['etude-entry-point'];
  if (own !== undefined) return own;
  return kind === 'procedure' || metadata['etude-program'] === 'true' ? null : undefined;
}

function fieldsIn(metadata: Readonly<Record<string, string>>): Partial<SkillParts> {
  const there = ETUDE_FIELDS.filter(({ key }) => metadata[key] !== undefined);
  return Object.fromEntries(
    there.map(({ key, field, schema, text }) => [
      field,
      parsed(key, schema, text ? metadata[key] : jsonIn(`metadata "${key}"`, metadata[key]!)),
    ]),
  );
}

function metadataOf({ name: _name, description: _description, metadata = {}, ...fields }: Frontmatter): NonNullable<Skill['metadata']> {
  const foreign = Object.entries(metadata).filter(([key]) => !key.startsWith('etude-'));
  const own = metadata['etude-metadata'];
  return {
    ...(own === undefined ? {} : parsed('etude-metadata', Skill.shape.metadata.unwrap(), jsonIn('metadata "etude-metadata"', own))),
    ...parsed('others', Skill.shape.metadata.unwrap(), fields),
    ...(foreign.length > 0 ? { metadata: Object.fromEntries(foreign) } : {}),
  };
}

function testsIn(files: readonly FolderFile[]): Skill['tests'] {
  const told = files.some(({ path }) => path === CASES) ? jsonIn(CASES, textOf(files, CASES)) : [];
  return [...parsed(CASES, Skill.shape.tests, told), ...pythonTests(files)];
}

export function pythonTests(files: readonly FolderFile[]): Skill['tests'] {
  const paths = files.map(({ path }) => path).filter((path) => PYTHON_TEST.test(path));
  return paths.toSorted().map((path) => ({ kind: 'python', setup: '', tests: textOf(files, path) }));
}

function textOf(files: readonly FolderFile[], path: string): string {
  const file = files.find((other) => other.path === path);
  if (!file) throw wrong(`the folder has no file ${path}`);
  try {
    // The decoder drops the byte order mark that some editors write.
    return new TextDecoder('utf-8', { fatal: true }).decode(file.bytes);
  } catch {
    throw wrong(`${path} is not UTF-8 text`);
  }
}

function jsonIn(place: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw wrong(`${place}: ${(error as Error).message}`);
  }
}

/** The deepest nesting of JSON that Python reads. */
const NESTING_MAX = 1_000;

function parsed<S extends z.ZodType>(place: string, schema: S, value: unknown): z.infer<S> {
  if (isDeeper(value, NESTING_MAX)) throw wrong(`${place}: is nested too deeply`);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [{ path, message } = { path: [], message: 'is wrong' }] = result.error.issues;
  throw wrong(`${[place, ...path.map(String)].join('.')}: ${message}`);
}
