import { SkillName } from '@etude/contracts/ids';

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
