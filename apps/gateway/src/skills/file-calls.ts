import { hash } from 'node:crypto';
import type { ImportSkillRequest, Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Scope, Skill } from '@etude/contracts/memory';
import {
  filesOfFolder,
  findSkills,
  FOLDER_LIMITS,
  type FolderFile,
  type FoundFolder,
  tooLarge,
} from '@etude/documents/skill-folder/file-collector';
import { folderFromSkill, readSkill, withoutTests } from '@etude/documents/skill-folder/skill-folder';
import { contentDigest, hasHiddenTests, skillDigest } from '@etude/domain/skills/content-digest';
import { newCandidate } from '@etude/domain/skills/life/skill-life';
import { isWithoutDependency } from '@etude/domain/skills/proof/bundle-code';
import { invalidField, opened } from '@etude/contracts/wire/validation';
import { ARCHIVE_BYTES_MAX, ARCHIVE_FORMATS, filesOfArchive } from '@etude/documents/skill-folder/read-archive';
import type { Handlers } from '../calls/calls.js';
import { once, versionsWork } from '../calls/once.js';
import { askedSkills, authorOf, meantVersion, readsHiddenTests, skillMessage } from '../readers/readers.js';
import type { Registration, SkillDeps } from '../registration/skill-registration.js';

const SKILLS_MAX = 20;

const WITHOUT_TESTS = 'exported without its tests, because tests from tasks may contain hidden cases. A reviewer key exports them too';

/** Import and export in the Agent Skills format: `etude.v1.Skills`. */
export const fileCalls = {
  async importSkill(requests, call, deps) {
    const { tenant, name: by, signal } = call;
    const { head, files } = await readImport(requests);
    const { dryRun, requestId } = head;
    const { reader, scope } = authorOf(call, head, 'head');
    const { found, notes } = findSkills(files);
    if (found.length > SKILLS_MAX) throw invalidField('file', `must not hold more than ${SKILLS_MAX} skills, but holds ${found.length}`);
    const source = sourceOfImport(files);
    const imported = found.map((folder) => importedSkill(folder, scope, source, Date.now()));
    const memory = await deps.memory.open();
    const registrations = imported.map((draft): Registration => ({ draft, reader, baseVersion: 0, by }));
    const waiting: string[] = [];
    const { again, resultOf } = versionsWork(memory.procedural, call);
    const identified = { tenant, requestId, method: 'ImportSkill', body: { source, scope, dryRun } };
    const skills = await once<readonly Skill[]>(
      memory,
      identified,
      { scope },
      {
        act: async ({ at }) => {
          const done: Skill[] = [];
          for (const one of registrations) {
            try {
              const completed = dryRun ? await deps.registration.completed(memory.procedural, one, signal) : null;
              if (completed !== null) done.push({ ...completed, digest: skillDigest(completed) });
              else done.push(await deps.registration.register(memory.procedural, one, signal, at));
            } catch (error) {
              // For example, the skill calls another skill of this import, which waits for approval.
              if (!isWithoutDependency(error)) throw error;
              waiting.push(`${(error as Error).message}; then import the same files again`);
            }
          }
          return done;
        },
        again,
        // With waiting skills, no result is stored. A repeat then stores the skills whose dependencies became active.
        resultOf: (done) => (dryRun || waiting.length > 0 ? null : resultOf(done)),
      },
    );
    return { skills: skills.map(skillMessage), notes: [...notes, ...waiting] };
  },

  async exportSkill(request, call, deps) {
    const { procedural } = await deps.memory.open();
    const skill = await meantVersion(procedural, askedSkills(call, request), request, ['active']);
    const hidden = hasHiddenTests(skill);
    const isWhole = !hidden || (!request.withoutHiddenTests && readsHiddenTests(call.roles, skill));
    // Marks the tests as hidden for an import elsewhere.
    const whole = hidden && skill.tests.length > 0 ? { ...skill, hiddenTests: true } : skill;
    const files = folderFromSkill(isWhole ? whole : withoutTests(skill));
    return { files: files.map(({ path, bytes: data }) => ({ path, data })), notes: isWhole ? [] : [WITHOUT_TESTS] };
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/**
 * A candidate made from a folder. The author is unknown, so the skill is never approved automatically.
 * What SKILL.md says about origin and solved tasks is kept in SKILL.md, but isn't trusted.
 *
 * @param source "imports/{id}"
 * @param at ms since 1970
 * @throws EtudeError INVALID_ARGUMENT
 */
function importedSkill({ folder, files }: FoundFolder, scope: Scope, source: string, at: number) {
  const { entryPoint, sources: _sources, cues: _cues, dependencies: _dependencies, ...parts } = readSkill({ folder, files });
  const skill = newCandidate({
    ...parts,
    scope,
    at,
    entryPoint: entryPoint ?? null,
    cues: parts.examplePrompts ?? [],
    sources: [source],
    origin: 'import',
    untrusted: ['imported'],
  });
  return { skill, isProgram: entryPoint === null && parts.kind !== 'procedure' };
}

function sourceOfImport(files: readonly FolderFile[]): string {
  const digests = files.map(({ path, bytes }) => [path, hash('sha256', bytes)]);
  return `imports/i${contentDigest(digests).slice(0, 32)}`;
}

const FORMATS = ['folder', ...ARCHIVE_FORMATS] as const;

/** Reads a whole import into memory, up to the size limit. @throws EtudeError INVALID_ARGUMENT, PAYLOAD_TOO_LARGE */
async function readImport(requests: AsyncIterable<ImportSkillRequest>) {
  const { head, rest } = await opened(requests, 'head');
  const format = FORMATS.find((one) => one === head.format);
  if (format === undefined) throw invalidField('head.format', `must be ${FORMATS.join(', ')}, but is ${JSON.stringify(head.format)}`);
  const bytesMax = format === 'folder' ? FOLDER_LIMITS.bytesMax : ARCHIVE_BYTES_MAX;
  const sent = await filesIn(rest, bytesMax);
  if (format === 'folder') return { head, files: filesOfFolder(sent) };
  if (sent.length > 1) throw invalidField('file.path', 'must be the same in every message, because the messages are parts of one archive');
  return { head, files: await filesOfArchive(sent[0]?.bytes ?? new Uint8Array(), format) };
}

async function filesIn(requests: AsyncIterable<ImportSkillRequest>, bytesMax: number): Promise<FolderFile[]> {
  const files = new Map<string, Uint8Array[]>();
  let bytes = 0;
  for await (const { part } of requests) {
    if (part.case !== 'file') throw invalidField('file', 'must be in every message after the first');
    const { path, data } = part.value;
    bytes += data.byteLength;
    if (bytes > bytesMax) throw tooLarge(`the import is larger than ${bytesMax} bytes`);
    files.set(path, [...(files.get(path) ?? []), data]);
    if (files.size > 2 * FOLDER_LIMITS.filesMax) throw tooLarge(`there are more than ${FOLDER_LIMITS.filesMax} files`);
  }
  return [...files].map(([path, parts]) => ({ path, bytes: Buffer.concat(parts) }));
}
