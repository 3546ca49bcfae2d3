import { isDeepStrictEqual } from 'node:util';
import type { FolderFile } from './file-collector.js';
import { fitsField, type Frontmatter, writeSkillText } from './frontmatter.js';
import { pythonTests } from './said-in-folder.js';
import {
  CASES,
  codePath,
  ETUDE_FIELDS,
  formatDescription,
  formatName,
  SKILL_TEXT,
  type SkillParts,
  skillNameOf,
  UNSAID,
} from './skill-parts.js';

/** The files that are written from a skill's fields. Tests that `extras` hold as Python files are not written again. */
export function canonicalFiles(parts: SkillParts, extras: readonly FolderFile[]): FolderFile[] {
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

/** The body of SKILL.md: a procedure's text, or a short description of the code. */
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
