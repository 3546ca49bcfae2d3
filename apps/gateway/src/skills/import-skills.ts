import { createHash } from 'node:crypto';
import type { ImportSkillRequest } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Scope } from '@etude/contracts/memory';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { filesOfFolder, FOLDER_LIMITS, type FolderFile, type FoundFolder, tooLarge } from '@etude/documents/skill-folder/file-collector';
import { ARCHIVE_BYTES_MAX, ARCHIVE_FORMATS, filesOfArchive } from '@etude/documents/skill-folder/read-archive';
import { readSkill } from '@etude/documents/skill-folder/skill-folder';
import { invalidField, opened } from '@etude/contracts/wire/validation';
import { candidateFields, type CheckedDraft, digested } from '../registration/skill-draft.js';

export interface ImportedSkill extends CheckedDraft {
  readonly notes: readonly string[];
}

/**
 * A candidate made from a folder. Its author is unknown, so it is never approved automatically.
 * Its own claims about its origin and solved tasks stay in its SKILL.md, but aren't trusted.
 *
 * @param source "imports/{id}"
 * @param at ms since 1970
 * @throws EtudeError INVALID_ARGUMENT
 */
export function importedSkill({ folder, files }: FoundFolder, scope: Scope, source: string, at: number): ImportedSkill {
  const { parts: said, notes } = readSkill({ folder, files });
  const { entryPoint, sources, cues, dependencies, ...parts } = said;
  const skill = digested({
    ...parts,
    ...candidateFields(scope, at),
    entryPoint: entryPoint ?? null,
    cues: parts.examplePrompts ?? [],
    sources: [source],
    origin: 'import',
    untrusted: ['imported'],
  });
  const place = folder === '' ? parts.name : folder;
  return {
    skill,
    isProgram: entryPoint === null && parts.kind !== 'procedure',
    notes: [
      ...notes,
      ...(sources.length + cues.length > 0
        ? [`${place}: an import drops the earlier sources of a skill. The source is now ${source}`]
        : []),
      ...(dependencies === undefined ? [] : [`${place}: the called skills are searched here by name`]),
    ],
  };
}

/** The id of an import, derived from its files. */
export function sourceOfImport(files: readonly FolderFile[]): string {
  const digests = files.map(({ path, bytes }) => [path, createHash('sha256').update(bytes).digest('hex')]);
  return `imports/i${contentDigest(digests).slice(0, 32)}`;
}

const FORMATS = ['folder', ...ARCHIVE_FORMATS] as const;

/**
 * Reads a whole import into memory, up to the size limit.
 *
 * @throws EtudeError INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, CANCELLED
 */
export async function readImport(requests: AsyncIterable<ImportSkillRequest>, signal: AbortSignal) {
  const { head, rest } = await opened(requests, 'head');
  const format = FORMATS.find((one) => one === head.format);
  if (format === undefined) throw invalidField('head.format', `must be ${FORMATS.join(', ')}; it is ${JSON.stringify(head.format)}`);
  const bytesMax = format === 'folder' ? FOLDER_LIMITS.bytesMax : ARCHIVE_BYTES_MAX;
  const files = await filesIn(rest, bytesMax);
  if (format === 'folder') return { head, came: filesOfFolder(files) };
  if (files.length > 1) throw invalidField('file.path', 'must be the same in every message, because the messages are parts of one archive');
  return { head, came: await filesOfArchive(files[0]?.bytes ?? new Uint8Array(), format, signal) };
}

async function filesIn(requests: AsyncIterable<ImportSkillRequest>, bytesMax: number): Promise<FolderFile[]> {
  const files = new Map<string, Uint8Array[]>();
  let bytes = 0;
  for await (const { part } of requests) {
    if (part.case !== 'file') throw invalidField(part.case ?? 'part', 'must be a file in every message but the first');
    const { path, data } = part.value;
    bytes += data.byteLength;
    if (bytes > bytesMax) throw tooLarge(`the import is larger than ${bytesMax} bytes`);
    files.set(path, [...(files.get(path) ?? []), data]);
    if (files.size > 2 * FOLDER_LIMITS.filesMax) throw tooLarge(`there are more than ${FOLDER_LIMITS.filesMax} files`);
  }
  return [...files].map(([path, parts]) => ({ path, bytes: Buffer.concat(parts) }));
}
