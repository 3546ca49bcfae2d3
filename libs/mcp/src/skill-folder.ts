import { extname } from 'node:path';
import { SkillName } from '@etude/contracts/ids';
import { type Skill, skillEntry } from '@modelcontextprotocol/server/ext/skills';

/** Names of the Agent Skills format have "-" where ours have "_", no two of them in a row, and at most 64 characters. */
const FORMAT_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const FORMAT_NAME_MAX = 64;
export const MANIFEST = 'SKILL.md';

/** One place under `skill://`: a skill, and a path inside its folder. */
export interface SkillPlace {
  /** As the registry has it: "sum_of_squares". */
  readonly skill: string;
  /** Path of the skill's folder: "sum-of-squares". */
  readonly folder: string;
  /** Decoded, without "." and ".."; empty for the folder itself. */
  readonly path: readonly string[];
}

/**
 * Where a skill's folder is. Its last segment is the name in its SKILL.md; a name that can't be read back from that comes first.
 *
 * @param formatName name in the frontmatter of its SKILL.md
 */
export function folderOf(skill: string, formatName: string): string {
  return formatName.replaceAll('-', '_') === skill ? formatName : `${skill}/${formatName}`;
}

/** A segment that only a name of ours can be: `folderOf` put it in front. */
const isPrefix = (segment: string) => segment.includes('_') || segment.length > FORMAT_NAME_MAX;

function decoded(segment: string): string | null {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch {
    return null;
  }
  return text === '' || text === '.' || text === '..' || /[/\\\0]/.test(text) ? null : text;
}

/** Null for what names no file or folder of a skill. */
export function placeOf(uri: string): SkillPlace | null {
  const [, rest = ''] = /^skill:\/\/([^?#]*)$/.exec(URL.parse(uri)?.href ?? '') ?? [];
  const segments = rest.split('/').map(decoded);
  if (segments.some((segment) => segment === null)) return null;
  const [first = '', ...others] = segments as string[];
  const folder = isPrefix(first) ? [first, others.shift() ?? ''] : [first];
  const formatName = folder.at(-1) ?? '';
  if (!FORMAT_NAME.test(formatName) || formatName.length > FORMAT_NAME_MAX) return null;
  const skill = folder.length === 2 ? first : first.replaceAll('-', '_');
  if (!SkillName.safeParse(skill).success) return null;
  return { skill, folder: folder.join('/'), path: others };
}

/** The files of one version of a skill, in the Agent Skills format, with the entry that names their digests. */
export interface SkillFolder {
  readonly entry: Skill;
  /** Path of its folder behind `skill://`. */
  readonly folder: string;
  /** By path inside the folder: "scripts/sum.py". */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** Paths of an export may start with the folder's own name. */
function withoutFolder(files: ReadonlyArray<{ path: string; data: Uint8Array }>): Map<string, Uint8Array> {
  const root = files.map(({ path }) => /^([^/]+\/)?SKILL\.md$/.exec(path)).find((found) => found !== null)?.[1] ?? '';
  return new Map(files.filter(({ path }) => path.startsWith(root)).map(({ path, data }) => [path.slice(root.length), data]));
}

/** Empty where there is none, which `skillEntry` then says. */
function formatNameOf(manifest: Uint8Array | undefined): string {
  const text = new TextDecoder().decode(manifest);
  return /^name:[ \t]*["']?([a-z0-9-]+)["']?[ \t]*$/m.exec(text)?.[1] ?? '';
}

/**
 * @param files as `ExportSkill` answers them
 * @throws Error naming what of the format they break
 */
export async function skillFolder(skill: string, files: ReadonlyArray<{ path: string; data: Uint8Array }>): Promise<SkillFolder> {
  const inside = withoutFolder(files);
  const formatName = formatNameOf(inside.get(MANIFEST));
  if (formatName === '') throw new Error(`the export of ${skill} has no ${MANIFEST} with a name`);
  const folder = folderOf(skill, formatName);
  return { entry: await skillEntry(folder, Object.fromEntries(inside)), folder, files: inside };
}

const BY_EXTENSION: Readonly<Record<string, string>> = {
  '.md': 'text/markdown',
  '.txt': 'text/plain',
  '.py': 'text/x-python',
  '.json': 'application/json',
  '.csv': 'text/csv',
  '.html': 'text/html',
  '.png': 'image/png',
};

/** By the file's name alone. */
export const mediaTypeOf = (path: string): string => BY_EXTENSION[extname(path).toLowerCase()] ?? 'application/octet-stream';
