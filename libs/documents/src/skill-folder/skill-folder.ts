import { isDeepStrictEqual } from 'node:util';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { canonicalFiles } from './canonical-folder.js';
import { byPath, type FolderFile, type FoundFolder } from './file-collector.js';
import { extrasOf, saidIn } from './said-in-folder.js';
import { CASES, PYTHON_TEST, SKILL_TEXT, type SkillParts } from './skill-parts.js';

export interface ReadSkill {
  readonly parts: SkillParts;
  /** What its author may want to know. */
  readonly notes: readonly string[];
}

/**
 * The skill that a folder holds. A function or snippet where its metadata says so, with its code in `scripts/`; else a procedure,
 * whose text is the Markdown of SKILL.md. `files` are those that could not be written again from the other fields.
 *
 * @param keepText keeps SKILL.md in any case: for a skill that will be told things that its folder does not say
 * @throws EtudeError INVALID_ARGUMENT naming the folder, the file and the field
 */
export function readSkill({ folder, files }: FoundFolder, keepText = false): ReadSkill {
  const { parts, name } = within(folder, () => saidIn(files));
  const canonical = new Map(canonicalFiles(parts, extrasOf(files, parts)).map(({ path, bytes }) => [path, bytes]));
  const kept = files
    .filter(({ path, bytes }) => (keepText && path === SKILL_TEXT) || !sameBytes(canonical.get(path), bytes))
    .toSorted(byPath)
    .map(({ path, bytes }) => ({ path, contentBase64: Buffer.from(bytes).toString('base64') }));
  return { parts: kept.length === 0 ? parts : { ...parts, files: kept }, notes: misnamed(folder, name) };
}

function within<T>(folder: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (folder === '' || errorCode(error) !== 'INVALID_ARGUMENT') throw error;
    throw new EtudeError('INVALID_ARGUMENT', `${folder}/${(error as Error).message}`, {}, { cause: error });
  }
}

/** The format wants a folder to have its skill's name; nobody is harmed where it has not. */
function misnamed(folder: string, name: string): string[] {
  const own = folder.slice(folder.lastIndexOf('/') + 1);
  return own === '' || own === name ? [] : [`the folder ${own} holds the skill ${name}, and should have its name`];
}

/**
 * The folder of a skill: byte for byte the one it came from, where it came from one and was not changed since. A changed skill
 * keeps the files that no field of it stands for; its SKILL.md is written anew.
 */
export function folderFromSkill(skill: SkillParts): FolderFile[] {
  const kept = (skill.files ?? []).map(({ path, contentBase64 }) => ({ path, bytes: Buffer.from(contentBase64, 'base64') }));
  const extras = extrasOf(kept, skill);
  const written = canonicalFiles(skill, extras);
  const asItCame = overlaid(overlaid(written, extras), kept);
  return (saysTheSame(asItCame, skill) ? asItCame : overlaid(written, extras)).toSorted(byPath);
}

/** The skill for whoever may not see its tests: none of them is in its folder, also not as a file that came with it. */
export function withoutTests<S extends SkillParts>({ hiddenTests: _hidden, ...skill }: S) {
  const { files = [] } = skill;
  return { ...skill, tests: [], files: files.filter(({ path }) => path !== CASES && !PYTHON_TEST.test(path)) };
}

function saysTheSame(files: readonly FolderFile[], skill: SkillParts): boolean {
  try {
    const { parts: said } = saidIn(files);
    const entryPoint = said.entryPoint === undefined || said.entryPoint === skill.entryPoint;
    return entryPoint && isDeepStrictEqual(authored(said), authored(skill));
  } catch {
    // Written for another name, perhaps: what does not fit the skill is not its folder.
    return false;
  }
}

/** What an author says; not what comes of registering and using it, such as pinned dependencies and retrieval cues. */
const AUTHORED = [
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
] as const;

function authored(skill: SkillParts): unknown {
  return JSON.parse(JSON.stringify(Object.fromEntries(AUTHORED.map((field) => [field, skill[field]]))));
}

function overlaid(files: readonly FolderFile[], over: readonly FolderFile[]): FolderFile[] {
  return [...files.filter(({ path }) => !over.some((other) => other.path === path)), ...over];
}

const sameBytes = (a: Uint8Array | undefined, b: Uint8Array) => a !== undefined && Buffer.compare(a, b) === 0;
