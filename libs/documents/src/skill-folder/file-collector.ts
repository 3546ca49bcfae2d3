import { EtudeError } from '@etude/contracts/errors';
import { SKILL_TEXT } from './skill-format.js';

/** A file of a folder. `path` is relative to the folder, with "/". */
export interface FolderFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The limits of a skill's folder. `bytesMax` limits the sum of all files. */
export const FOLDER_LIMITS = { filesMax: 200, fileBytesMax: 2 ** 20, bytesMax: 4 * 2 ** 20 };

const PATH_CHARS_MAX = 512;
const DEPTH_MAX = 16;
/** A part of a path: letters, digits and the few signs that all systems read alike. */
const SEGMENT = /^[\p{L}\p{M}\p{N}._(@+-](?:[\p{L}\p{M}\p{N} ._()@+,=!&'-]*[\p{L}\p{M}\p{N}_)@+-])?$/u;
/** Files that operating systems add to folders. They are skipped. */
const LITTER = /(?:^|\/)(?:__MACOSX\/|\.DS_Store$|Thumbs\.db$|desktop\.ini$)/;

/** @throws EtudeError INVALID_ARGUMENT for a path that is absolute, leaves the folder, or has another meaning on another system */
export function checkPath(path: string): void {
  const segments = path.split('/');
  const isPlain = segments.every((segment) => SEGMENT.test(segment) && !/^\.{1,2}$/.test(segment));
  if (isPlain && segments.length <= DEPTH_MAX && path.length <= PATH_CHARS_MAX) return;
  throw new EtudeError(
    'INVALID_ARGUMENT',
    `the path ${JSON.stringify(path.slice(0, 200))} can't be used; rename the file. A path may have letters, digits and signs such as "-", "_" and ".", ` +
      `at most ${DEPTH_MAX} folders and ${PATH_CHARS_MAX} characters`,
  );
}

/** Collects the files of a folder one by one. One forbidden file makes the whole folder invalid. */
export class FileCollector {
  readonly #files = new Map<string, FolderFile>();
  /** Paths by their form without case, since some file systems ignore case. */
  readonly #places = new Map<string, string>();
  #bytes = 0;

  wants(path: string): boolean {
    checkPath(path);
    if (LITTER.test(path)) return false;
    if (this.#files.size >= FOLDER_LIMITS.filesMax) throw tooLarge(`there are more than ${FOLDER_LIMITS.filesMax} files`);
    return true;
  }

  /** Maximum size of the next file, in bytes. The reader checks this limit while unpacking. */
  get bytesLeft(): number {
    return Math.min(FOLDER_LIMITS.fileBytesMax, FOLDER_LIMITS.bytesMax - this.#bytes);
  }

  add(path: string, bytes: Uint8Array): void {
    if (!this.wants(path)) return;
    if (bytes.length > FOLDER_LIMITS.fileBytesMax)
      throw tooLarge(`${JSON.stringify(path)} has ${bytes.length} bytes; at most ${FOLDER_LIMITS.fileBytesMax} are allowed`);
    this.#bytes += bytes.length;
    if (this.#bytes > FOLDER_LIMITS.bytesMax) throw tooLarge(`the files are larger than ${FOLDER_LIMITS.bytesMax} bytes together`);
    this.#takePlace(path);
    this.#files.set(path, { path, bytes });
  }

  #takePlace(path: string): void {
    const place = path.normalize('NFKC').toUpperCase().toLowerCase();
    const there = this.#places.get(place);
    if (there !== undefined) {
      const message = `${JSON.stringify(path)} and ${JSON.stringify(there)} are the same path on some systems; keep one of them`;
      throw new EtudeError('INVALID_ARGUMENT', message);
    }
    this.#places.set(place, path);
  }

  /** @throws EtudeError INVALID_ARGUMENT if there are no files, or a file has the path of a folder */
  done(): readonly FolderFile[] {
    if (this.#files.size === 0) throw new EtudeError('INVALID_ARGUMENT', 'the archive or folder contains no files');
    for (const path of this.#files.keys())
      if ([...this.#files.keys()].some((other) => other.startsWith(`${path}/`)))
        throw new EtudeError('INVALID_ARGUMENT', `${JSON.stringify(path)} is both a file and a folder; keep one of them`);
    return [...this.#files.values()].toSorted(byPath);
  }
}

/** @throws EtudeError with the codes of `FileCollector` */
export function filesOfFolder(files: readonly FolderFile[]): readonly FolderFile[] {
  const collector = new FileCollector();
  for (const { path, bytes } of files) collector.add(path, bytes);
  return collector.done();
}

export const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : Number(a.path > b.path));

export function tooLarge(what: string): EtudeError {
  return new EtudeError('PAYLOAD_TOO_LARGE', `${what}; remove files that the skill does not need`);
}

export interface FoundFolder {
  /** Path of the folder below the root of all files; '' for the root. */
  readonly folder: string;
  readonly files: readonly FolderFile[];
}

/**
 * Finds the folders with a SKILL.md. A skill folder inside another belongs to the outer skill. Files are not parsed yet, so that the
 * caller can limit the number of skills.
 *
 * @throws EtudeError INVALID_ARGUMENT if no such folder exists
 */
export function findSkills(files: readonly FolderFile[]): { readonly found: readonly FoundFolder[]; readonly notes: readonly string[] } {
  const folders = files
    .filter(({ path }) => path === SKILL_TEXT || path.endsWith(`/${SKILL_TEXT}`))
    .map(({ path }) => path.slice(0, -SKILL_TEXT.length))
    .toSorted((a, b) => a.length - b.length);
  const outer = folders.filter((folder, index) => !folders.slice(0, index).some((other) => folder.startsWith(other)));
  if (outer.length === 0) throw new EtudeError('INVALID_ARGUMENT', `no ${SKILL_TEXT} was found; a skill is a folder with that file`);
  const found = outer.toSorted().map((folder) => ({ folder: folder.slice(0, -1), files: filesIn(folder, files) }));
  const left = files.filter(({ path }) => !outer.some((folder) => path.startsWith(folder)));
  return { found, notes: left.map(({ path }) => `${path} was skipped: it is in no skill's folder`) };
}

function filesIn(folder: string, files: readonly FolderFile[]): FolderFile[] {
  return files.filter(({ path }) => path.startsWith(folder)).map(({ path, bytes }) => ({ path: path.slice(folder.length), bytes }));
}
