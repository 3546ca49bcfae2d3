import { extname } from 'node:path';
import { SkillName } from '@etude/contracts/ids';
import { type Skill, skillEntry } from '@modelcontextprotocol/server/ext/skills';

/** A name in the Agent Skills format: "-" where Etude's names have "_", never two in a row, at most 64 characters. */
const FORMAT_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const FORMAT_NAME_MAX = 64;
export const MANIFEST = 'SKILL.md';

/** A place under `skill://`: a skill, and a path in its folder. */
export interface SkillPlace {
  /** Name in the registry: "sum_of_squares". */
  readonly skill: string;
  /** Path of the skill's folder: "sum-of-squares". */
  readonly folder: string;
  /** Decoded segments, without "." and ".."; empty for the folder itself. */
  readonly path: readonly string[];
}

/**
 * The folder of a skill. Its last segment is the name in SKILL.md. The registry's name precedes it if the two don't correspond.
 *
 * @param formatName name in the frontmatter of SKILL.md
 */
export function folderOf(skill: string, formatName: string): string {
  return formatName.replaceAll('-', '_') === skill ? formatName : `${skill}/${formatName}`;
}

/** Whether a first segment can only be a registry name, which `folderOf` put in front. */
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

/** The place that a URI names; null if it names no file or folder of a skill. */
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

/** One version of a skill in the Agent Skills format: its files, and an entry with their digests. */
export interface SkillFolder {
  readonly entry: Skill;
  /** Path of the folder after `skill://`. */
  readonly folder: string;
  /** By path in the folder: "scripts/sum.py". */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** Strips the folder's name, which may precede the paths of an export. */
function withoutFolder(files: ReadonlyArray<{ path: string; data: Uint8Array }>): Map<string, Uint8Array> {
  const root = files.map(({ path }) => /^([^/]+\/)?SKILL\.md$/.exec(path)).find((found) => found !== null)?.[1] ?? '';
  return new Map(files.filter(({ path }) => path.startsWith(root)).map(({ path, data }) => [path.slice(root.length), data]));
}

/** The name in a SKILL.md; empty if there is none. */
function formatNameOf(manifest: Uint8Array | undefined): string {
  const text = new TextDecoder().decode(manifest);
  return /^name:[ \t]*["']?([a-z0-9-]+)["']?[ \t]*$/m.exec(text)?.[1] ?? '';
}

/**
 * @param files the answer of `ExportSkill`
 * @throws Error naming the violation of the format
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

export const mediaTypeOf = (path: string): string => BY_EXTENSION[extname(path).toLowerCase()] ?? 'application/octet-stream';
