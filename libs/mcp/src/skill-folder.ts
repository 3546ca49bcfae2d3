import { type Skill, skillEntry } from '@modelcontextprotocol/server/ext/skills';
import { folderOf, MANIFEST } from './skill-uri.js';

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
