import { createHash } from 'node:crypto';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { FolderFile, FoundFolder } from '@etude/documents/skill-folder/file-collector';
import { readSkill } from '@etude/documents/skill-folder/skill-folder';
import { codePath, SKILL_TEXT, type SkillParts } from '@etude/documents/skill-folder/skill-parts';
import { skillDigest } from '@etude/domain/skills/content-digest';
import { CODE_MAX_BYTES } from '@etude/domain/skills/proof/inspect-code';
import { refuseAny } from '../wire/validation.js';
import type { CheckedDraft } from './skill-draft.mapping.js';

/** As for what is registered by hand. */
const TEXT_CHARS_MAX = 400_000;
const TESTS_MAX = 200;
const LIST_MAX = 100;

export interface ImportedSkill extends CheckedDraft {
  readonly notes: readonly string[];
}

/**
 * A candidate of what a folder holds. Nobody here wrote it: it is never approved automatically. What it says of where it was learned,
 * and which tasks it solved there, is kept in its SKILL.md and believed by nobody.
 *
 * @param source "imports/{id}"
 * @param at ms since 1970
 * @throws EtudeError INVALID_ARGUMENT
 */
export function importedSkill({ folder, files }: FoundFolder, scope: Scope, source: string, at: number): ImportedSkill {
  const { parts: said, notes } = readSkill({ folder, files }, true);
  const { entryPoint, sources, cues, dependencies, ...parts } = said;
  refuseLarge(parts, folder);
  const skill: Omit<Skill, 'digest'> = {
    ...parts,
    version: 1,
    scope,
    entryPoint: entryPoint ?? null,
    cues: parts.examplePrompts ?? [],
    fingerprints: [],
    status: 'candidate',
    statusReason: '',
    evidence: [],
    sources: [source],
    executionCount: 0,
    successRate: 1,
    createdAt: at,
    updatedAt: at,
    origin: 'import',
    untrusted: ['imported'],
  };
  const place = folder === '' ? parts.name : folder;
  return {
    skill: { ...skill, digest: skillDigest(skill) },
    isProgram: entryPoint === null && parts.kind !== 'procedure',
    notes: [
      ...notes,
      ...(sources.length + cues.length > 0 ? [`${place}: where it was learned is not taken over; its source is ${source}`] : []),
      ...(dependencies === undefined ? [] : [`${place}: the skills that it calls are looked for here by their names`]),
    ],
  };
}

/** The same files are the same import. */
export function sourceOfImport(files: readonly FolderFile[]): string {
  const hash = createHash('sha256');
  for (const { path, bytes } of files)
    hash
      .update(`${Buffer.byteLength(path)} ${bytes.byteLength} `)
      .update(path)
      .update(bytes);
  return `imports/i${hash.digest('hex').slice(0, 32)}`;
}

type Large = Omit<SkillParts, 'entryPoint' | 'sources' | 'cues'>;

function refuseLarge(parts: Large, folder: string): void {
  const { name, code, tests, tags, examplePrompts = [], parameters, packages = [] } = parts;
  const lists = { tags, examplePrompts, parameters, packages };
  const say = (description: string) => ({ field: name, description });
  refuseAny([
    ...largeText(parts, folder).map(say),
    ...(code.includes('\0') ? [say('its code holds a NUL character')] : []),
    ...(tests.length > TESTS_MAX ? [say(`it has ${tests.length} tests, and ${TESTS_MAX} are the most`)] : []),
    ...Object.entries(lists).flatMap(([field, list]) =>
      list.length > LIST_MAX ? [say(`it has ${list.length} ${field}, and ${LIST_MAX} are the most`)] : [],
    ),
  ]);
}

/** Which file is too large, how large it is, and how large it may be. */
function largeText({ name, kind, code }: Large, folder: string): string[] {
  const path = `${folder === '' ? '' : `${folder}/`}${kind === 'procedure' ? SKILL_TEXT : codePath(name)}`;
  if (kind === 'procedure')
    return code.length > TEXT_CHARS_MAX
      ? [
          `the text of ${path} has ${code.length} characters, and ${TEXT_CHARS_MAX} are the most; move what is looked up into files beside it`,
        ]
      : [];
  const bytes = Buffer.byteLength(code);
  return bytes > CODE_MAX_BYTES
    ? [`${path} has ${bytes} bytes, and ${CODE_MAX_BYTES} are the most; a skill is one tool, not a library`]
    : [];
}
