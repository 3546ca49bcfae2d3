import { isDeepStrictEqual } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { canonicalFiles } from './canonical-folder.js';
import { byPath, type FolderFile, type FoundFolder } from './file-collector.js';
import { extrasOf, saidIn } from './said-in-folder.js';
import { AUTHORED, CASES, PYTHON_TEST, SKILL_TEXT, type SkillParts } from './skill-parts.js';

export interface ReadSkill {
  readonly parts: SkillParts;
  /** Notes for the skill's author. */
  readonly notes: readonly string[];
}

/**
 * Reads the skill in a folder. It is a function or a snippet if its metadata says so, with its code in `scripts/`. Otherwise it is a
 * procedure, whose text is the Markdown of SKILL.md. `files` are SKILL.md and the files that can't be written from the other fields.
 * SKILL.md is kept because the skill may later get fields that its folder doesn't state.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the folder, the file and the field
 */
export function readSkill({ folder, files }: FoundFolder): ReadSkill {
  const { parts, name } = within(folder, () => saidIn(files));
  const canonical = new Map(canonicalFiles(parts, extrasOf(files, parts)).map(({ path, bytes }) => [path, bytes]));
  const kept = files
    .filter(({ path, bytes }) => path === SKILL_TEXT || !sameBytes(canonical.get(path), bytes))
    .toSorted(byPath)
    .map(({ path, bytes }) => ({ path, contentBase64: Buffer.from(bytes).toString('base64') }));
  return { parts: { ...parts, files: kept }, notes: misnamed(folder, name) };
}

function within<T>(folder: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (folder === '' || errorCode(error) !== 'INVALID_ARGUMENT') throw error;
    throw new EtudeError('INVALID_ARGUMENT', `${folder}/${(error as Error).message}`, {}, { cause: error });
  }
}

/** A note if the folder doesn't have the skill's name. The format requires the same name, but a difference does no harm. */
function misnamed(folder: string, name: string): string[] {
  const own = folder.slice(folder.lastIndexOf('/') + 1);
  return own === '' || own === name ? [] : [`the folder ${own} holds the skill ${name}; rename the folder to ${name}`];
}

/**
 * Writes the folder of a skill. A skill that came from a folder and was not changed since gets the same files, byte for byte. A changed
 * skill gets a new SKILL.md and keeps the files that hold none of its fields.
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
    const { parts: said } = saidIn(files);
    const entryPoint = said.entryPoint === undefined || said.entryPoint === skill.entryPoint;
    return entryPoint && isDeepStrictEqual(authored(said), authored(skill));
  } catch (error) {
    if (errorCode(error) !== 'INVALID_ARGUMENT') throw error;
    // The kept files belong to an earlier name of the skill.
    return false;
  }
}

/** Fields from registration and use, such as pinned dependencies and retrieval cues, are left out. */
function authored(skill: SkillParts): unknown {
  return JSON.parse(JSON.stringify(Object.fromEntries(AUTHORED.map((field) => [field, skill[field]]))));
}

function overlaid(files: readonly FolderFile[], over: readonly FolderFile[]): FolderFile[] {
  return [...files.filter(({ path }) => !over.some((other) => other.path === path)), ...over];
}

const sameBytes = (a: Uint8Array | undefined, b: Uint8Array) => a !== undefined && Buffer.compare(a, b) === 0;
