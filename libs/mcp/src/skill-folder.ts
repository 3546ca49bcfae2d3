import { extname } from 'node:path';
import { SkillName } from '@etude/contracts/ids';
import { type Skill, skillEntry } from '@modelcontextprotocol/server/ext/skills';

export const MANIFEST = 'SKILL.md';

/** A place under `skill://`: a skill by its name in the registry, and the decoded path in its folder, empty for the folder itself. */
export interface SkillPlace {
  readonly skill: string;
  readonly path: string;
}

/** The place that a URI names; null if the URI can't name a skill. The Agent Skills format has "-" where Etude's names have "_". */
export function placeOf(uri: string): SkillPlace | null {
  const [, folder = '', path = ''] = /^skill:\/\/([a-z0-9-]+)(?:\/([^?#]*))?$/.exec(uri) ?? [];
  const skill = SkillName.safeParse(folder.replaceAll('-', '_'));
  try {
    return skill.success ? { skill: skill.data, path: decodeURIComponent(path) } : null;
  } catch {
    return null;
  }
}

/** One version of a skill in the Agent Skills format: its files, and an entry with their digests. */
export interface SkillFolder {
  readonly entry: Skill;
  /** Path of the folder after `skill://`. */
  readonly folder: string;
  /** By path in the folder: "scripts/sum.py". */
  readonly files: ReadonlyMap<string, Uint8Array>;
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
  const inside = new Map(files.map(({ path, data }) => [path, data]));
  const folder = formatNameOf(inside.get(MANIFEST));
  if (folder.replaceAll('-', '_') !== skill) throw new Error(`the name in the ${MANIFEST} of ${skill} is another one: "${folder}"`);
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
