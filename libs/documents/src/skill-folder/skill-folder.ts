import { isDeepStrictEqual } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { byPath, type FolderFile, type FoundFolder } from './file-collector.js';
import { extrasOf, pythonTests, saidIn } from './said-in-folder.js';
import {
  AUTHORED,
  CASES,
  codePath,
  ETUDE_FIELDS,
  fitsField,
  formatDescription,
  formatName,
  type Frontmatter,
  PYTHON_TEST,
  SKILL_TEXT,
  skillNameOf,
  type SkillParts,
  UNSAID,
  writeSkillText,
} from './skill-format.js';

/**
 * Reads the skill in a folder. It is a function or a snippet if its metadata says so, with its code in `scripts/`. Otherwise it is a
 * procedure, whose text is the Markdown of SKILL.md. `files` are SKILL.md and the files that can't be written from the other fields.
 * SKILL.md is kept because the skill may later get fields that its folder doesn't state.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the folder, the file and the field
 */
export function readSkill({ folder, files }: FoundFolder): SkillParts {
  const parts = within(folder, () => saidIn(files));
  const canonical = new Map(canonicalFiles(parts, extrasOf(files, parts)).map(({ path, bytes }) => [path, bytes]));
  const kept = files
    .filter(({ path, bytes }) => path === SKILL_TEXT || !sameBytes(canonical.get(path), bytes))
    .toSorted(byPath)
    .map(({ path, bytes }) => ({ path, contentBase64: Buffer.from(bytes).toString('base64') }));
  return { ...parts, files: kept };
}

function within<T>(folder: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (folder === '' || errorCode(error) !== 'INVALID_ARGUMENT') throw error;
    throw new EtudeError('INVALID_ARGUMENT', `${folder}/${(error as Error).message}`, {}, { cause: error });
  }
}

/**
 * Writes the folder of a skill. A skill that was read from a folder and not changed gets the same files, byte for byte. A changed skill
 * gets a new SKILL.md and keeps the files that contain none of its fields.
 */
export function folderFromSkill(skill: SkillParts): FolderFile[] {
  const kept = (skill.files ?? []).map(({ path, contentBase64 }) => ({ path, bytes: Buffer.from(contentBase64, 'base64') }));
  const extras = extrasOf(kept, skill);
  const written = canonicalFiles(skill, extras);
  const asItCame = overlaid(overlaid(written, extras), kept);
  return (saysTheSame(asItCame, skill) ? asItCame : overlaid(written, extras)).toSorted(byPath);
}

/** The skill for readers who may not see its tests. The files of its folder don't include tests either. */
export function withoutTests<S extends SkillParts>({ hiddenTests: _hidden, ...skill }: S) {
  const { files = [] } = skill;
  return { ...skill, tests: [], files: files.filter(({ path }) => path !== CASES && !PYTHON_TEST.test(path)) };
}

function saysTheSame(files: readonly FolderFile[], skill: SkillParts): boolean {
  try {
    const said = saidIn(files);
    const entryPoint = said.entryPoint === undefined || said.entryPoint === skill.entryPoint;
    return entryPoint && isDeepStrictEqual(authored(said), authored(skill));
  } catch (error) {
    if (errorCode(error) !== 'INVALID_ARGUMENT') throw error;
    // The kept files belong to an earlier name of the skill.
    return false;
  }
}

/** The fields that an author writes. Fields from registration and use, such as pinned dependencies, are left out. */
function authored(skill: SkillParts): unknown {
  return JSON.parse(JSON.stringify(Object.fromEntries(AUTHORED.map((field) => [field, skill[field]]))));
}

function overlaid(files: readonly FolderFile[], over: readonly FolderFile[]): FolderFile[] {
  return [...files.filter(({ path }) => !over.some((other) => other.path === path)), ...over];
}

const sameBytes = (a: Uint8Array | undefined, b: Uint8Array) => a !== undefined && Buffer.compare(a, b) === 0;

/** The files that are written from a skill's fields. Tests that are Python files in `extras` are not written again. */
function canonicalFiles(parts: SkillParts, extras: readonly FolderFile[]): FolderFile[] {
  const files: FolderFile[] = [file(SKILL_TEXT, writeSkillText({ frontmatter: frontmatterOf(parts), body: bodyOf(parts) }))];
  if (parts.kind !== 'procedure') files.push(file(codePath(parts.name), parts.code));
  const beside = pythonTests(extras);
  const told = beside.length > 0 && isDeepStrictEqual(parts.tests.slice(-beside.length), beside);
  const cases = told ? parts.tests.slice(0, -beside.length) : parts.tests;
  if (cases.length > 0) files.push(file(CASES, `${JSON.stringify(cases, null, 2)}\n`));
  return files;
}

function frontmatterOf(parts: SkillParts): Frontmatter {
  const name = formatName(parts.name);
  const description = formatDescription(parts.description, parts.name);
  const { fields, foreign, rest } = placesOf(parts.metadata ?? {});
  const own: Record<string, string> = { 'etude-kind': parts.kind };
  if (skillNameOf(name) !== parts.name) own['etude-name'] = parts.name;
  if (description !== parts.description) own['etude-description'] = parts.description;
  if (typeof parts.entryPoint === 'string') own['etude-entry-point'] = parts.entryPoint;
  if (parts.entryPoint === null && parts.kind !== 'procedure') own['etude-program'] = 'true';
  for (const { key, field, text } of ETUDE_FIELDS) {
    const value = parts[field];
    if (value === undefined || isDeepStrictEqual(value, (UNSAID as Readonly<Record<string, unknown>>)[field])) continue;
    own[key] = text ? (value as string) : JSON.stringify(value);
  }
  if (Object.keys(rest).length > 0) own['etude-metadata'] = JSON.stringify(rest);
  return { name, description, ...fields, metadata: { ...foreign, ...own } };
}

function placesOf(metadata: NonNullable<SkillParts['metadata']>) {
  const entries = sorted(metadata);
  const foreign = metadata['metadata'];
  const fields = Object.fromEntries(entries.filter(([key, value]) => fitsField(key, value)));
  const rest = entries.filter(([key]) => !Object.hasOwn(fields, key) && !(key === 'metadata' && isForeign(foreign)));
  return { fields, foreign: isForeign(foreign) ? Object.fromEntries(sorted(foreign)) : {}, rest: Object.fromEntries(rest) };
}

const sorted = <T>(map: Readonly<Record<string, T>>) => Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1));

function isForeign(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  return entries.length > 0 && entries.every(([key, text]) => typeof text === 'string' && !key.startsWith('etude-'));
}

function bodyOf({ name, kind, code, entryPoint, description }: SkillParts): string {
  if (kind === 'procedure') return code;
  const how = entryPoint
    ? `defines \`${entryPoint}\``
    : entryPoint === null
      ? 'reads standard input and writes standard output'
      : 'holds the code';
  return `# ${formatName(name)}\n\n${formatDescription(description, name)}\n\n\`${codePath(name)}\` ${how}.\n`;
}

function file(path: string, text: string): FolderFile {
  return { path, bytes: Buffer.from(text, 'utf8') };
}
