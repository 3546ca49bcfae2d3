import { EtudeError } from '@etude/contracts/errors';
import type { FolderFile } from './file-collector.js';
import { SKILL_TEXT } from './skill-parts.js';

export interface FoundFolder {
  /** From the root of what came in; empty: the root itself. */
  readonly folder: string;
  /** Paths from the folder. */
  readonly files: readonly FolderFile[];
}

/**
 * The folders that hold a skill: those with a SKILL.md, at the root or below; one inside of another belongs to the outer one. Nothing is
 * read yet: how many there may be is for the caller to say.
 *
 * @throws EtudeError INVALID_ARGUMENT where there is none
 */
export function findSkills(files: readonly FolderFile[]): { readonly found: readonly FoundFolder[]; readonly notes: readonly string[] } {
  const folders = files
    .filter(({ path }) => path === SKILL_TEXT || path.endsWith(`/${SKILL_TEXT}`))
    .map(({ path }) => path.slice(0, -SKILL_TEXT.length))
    .toSorted((a, b) => a.length - b.length);
  const outer = folders.filter((folder, index) => !folders.slice(0, index).some((other) => folder.startsWith(other)));
  if (outer.length === 0) throw new EtudeError('INVALID_ARGUMENT', `there is no ${SKILL_TEXT} in it; a skill is a folder with that file`);
  const found = outer.toSorted().map((folder) => ({ folder: folder.slice(0, -1), files: filesIn(folder, files) }));
  const left = files.filter(({ path }) => !outer.some((folder) => path.startsWith(folder)));
  return { found, notes: left.map(({ path }) => `${path} was left out: it belongs to no skill`) };
}

function filesIn(folder: string, files: readonly FolderFile[]): FolderFile[] {
  return files.filter(({ path }) => path.startsWith(folder)).map(({ path, bytes }) => ({ path: path.slice(folder.length), bytes }));
}
