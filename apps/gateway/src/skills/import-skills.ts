import { createHash } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { ImportSkillRequest } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Scope } from '@etude/contracts/memory';
import { filesOfFolder, FOLDER_LIMITS, type FolderFile, type FoundFolder, tooLarge } from '@etude/documents/skill-folder/file-collector';
import { ARCHIVE_BYTES_MAX, ARCHIVE_FORMATS, filesOfArchive } from '@etude/documents/skill-folder/read-archive';
import { readSkill } from '@etude/documents/skill-folder/skill-folder';
import { codePath, SKILL_TEXT, type SkillParts } from '@etude/documents/skill-folder/skill-parts';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { findSkill } from '@etude/domain/skills/life/find-skill';
import { CODE_MAX_BYTES } from '@etude/domain/skills/proof/inspect-code';
import type { Registration } from '../registration/skill-registration.js';
import { invalidField, refuseAny } from '../wire/validation.js';
import { candidateFields, type CheckedDraft, digested } from '../registration/skill-draft.js';

/** The same limits as for registration. */
const TEXT_CHARS_MAX = 400_000;
const TESTS_MAX = 200;
const LIST_MAX = 100;

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
  refuseLarge(said, folder);
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
      ...(sources.length + cues.length > 0 ? [`${place}: where it was learned is not taken over; its source is ${source}`] : []),
      ...(dependencies === undefined ? [] : [`${place}: the skills that it calls are looked for here by their names`]),
    ],
  };
}

/** The id of an import, derived from its files. */
export function sourceOfImport(files: readonly FolderFile[]): string {
  const hash = createHash('sha256');
  for (const { path, bytes } of files)
    hash
      .update(`${Buffer.byteLength(path)} ${bytes.byteLength} `)
      .update(path)
      .update(bytes);
  return `imports/i${hash.digest('hex').slice(0, 32)}`;
}

function refuseLarge({ name, kind, code, tests, tags, examplePrompts = [], parameters, packages = [] }: SkillParts, folder: string): void {
  const isText = kind === 'procedure';
  const path = `${folder === '' ? '' : `${folder}/`}${isText ? SKILL_TEXT : codePath(name)}`;
  const lists = { tests, tags, examplePrompts, parameters, packages };
  const sizes: ReadonlyArray<readonly [what: string, size: number, unit: string, max: number]> = [
    isText ? [`the text of ${path}`, code.length, 'characters', TEXT_CHARS_MAX] : [path, Buffer.byteLength(code), 'bytes', CODE_MAX_BYTES],
    ...Object.entries(lists).map(([field, list]) => ['it', list.length, field, field === 'tests' ? TESTS_MAX : LIST_MAX] as const),
  ];
  const wrong = sizes
    .filter(([, size, , max]) => size > max)
    .map(([what, size, unit, max]) => `${what} has ${size} ${unit}, and ${max} are the most`);
  if (code.includes('\0')) wrong.push('its code holds a NUL character');
  refuseAny(wrong.map((description) => ({ field: name, description })));
}

const FORMATS = ['folder', ...ARCHIVE_FORMATS] as const;

/**
 * Reads a whole import into memory, up to the size limit.
 *
 * @throws EtudeError INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, CANCELLED
 */
export async function readImport(requests: AsyncIterable<ImportSkillRequest>, signal: AbortSignal) {
  const incoming = requests[Symbol.asyncIterator]();
  const first = await incoming.next();
  if (first.done || first.value.part.case !== 'head') throw invalidField('head', 'is required in the first message of an import');
  const head = first.value.part.value;
  const format = FORMATS.find((one) => one === head.format);
  if (format === undefined) throw invalidField('head.format', `must be ${FORMATS.join(', ')}; it is ${JSON.stringify(head.format)}`);
  const bytesMax = format === 'folder' ? FOLDER_LIMITS.bytesMax : ARCHIVE_BYTES_MAX;
  const files = await filesIn({ [Symbol.asyncIterator]: () => incoming }, bytesMax);
  if (format === 'folder') return { head, came: filesOfFolder(files) };
  if (files.length > 1) throw invalidField('file.path', 'must be the same in every message: these are the bytes of one archive');
  return { head, came: await filesOfArchive(files[0]?.bytes ?? new Uint8Array(), format, signal) };
}

async function filesIn(requests: AsyncIterable<ImportSkillRequest>, bytesMax: number): Promise<FolderFile[]> {
  const files = new Map<string, Uint8Array[]>();
  let bytes = 0;
  for await (const { part } of requests) {
    if (part.case !== 'file') throw invalidField(part.case ?? 'part', 'must be a file in every message but the first');
    const { path, data } = part.value;
    bytes += data.byteLength;
    if (bytes > bytesMax) throw tooLarge(`what came in is larger than ${bytesMax} bytes`);
    files.set(path, [...(files.get(path) ?? []), data]);
    if (files.size > 2 * FOLDER_LIMITS.filesMax) throw tooLarge(`there are more than ${FOLDER_LIMITS.filesMax} files`);
  }
  return [...files].map(([path, parts]) => ({ path, bytes: Buffer.concat(parts) }));
}

/** One skill of an import, with the names of the skills it calls. */
export interface ReadImport {
  readonly registration: Registration;
  readonly uses: readonly string[];
}

export interface ImportOrder {
  /** The skills that can be registered now, called ones before their callers. */
  readonly ready: readonly Registration[];
  /** One message for each skill that waits for others: which ones, and what to do. */
  readonly waiting: readonly string[];
}

const nameOf = ({ registration }: ReadImport) => registration.draft.skill.name;

/**
 * Sorts the skills of an import. Dependencies are pinned to active skills, and imported skills become active only by approval.
 * So a caller of another skill in the import waits. Importing the same files again later registers it.
 *
 * @throws EtudeError FAILED_PRECONDITION if skills call each other in a circle; MEMORY_UNAVAILABLE
 */
export async function orderImport(procedural: Pick<ProceduralMemory, 'versions'>, imports: readonly ReadImport[]): Promise<ImportOrder> {
  const names = new Set(imports.map(nameOf));
  const ready: Registration[] = [];
  const waiting: string[] = [];
  for (const one of calledFirst(imports)) {
    const ofImport = one.uses.filter((name) => names.has(name));
    const missing = (await notActive(procedural, one.registration.draft.skill.scope, ofImport)).join(', ');
    if (missing === '') ready.push(one.registration);
    else waiting.push(`${nameOf(one)} waits: it calls ${missing}, not active yet; approve ${missing}, then import the same again`);
  }
  return { ready, waiting };
}

/** The names that aren't active skills for readers of this owner's skills. */
export async function notActive(
  procedural: Pick<ProceduralMemory, 'versions'>,
  owner: Scope,
  names: readonly string[],
): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const name of names) if ((await findSkill(procedural, owner, name)) === null) missing.push(name);
  return missing;
}

function calledFirst(imports: readonly ReadImport[]): readonly ReadImport[] {
  const byName = new Map(imports.map((one) => [nameOf(one), one]));
  const ordered = new Set<ReadImport>();
  const visit = (one: ReadImport, path: readonly string[]) => {
    const name = nameOf(one);
    if (path.includes(name))
      throw new EtudeError('FAILED_PRECONDITION', `skills call each other in a circle: ${[...path, name].join(' -> ')}; take one call out`);
    if (ordered.has(one)) return;
    for (const used of one.uses) {
      const called = byName.get(used);
      if (called !== undefined) visit(called, [...path, name]);
    }
    ordered.add(one);
  };
  for (const one of imports) visit(one, []);
  return [...ordered];
}
