import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import {
  type ImportSkillRequest_Head,
  ImportSkillRequest_HeadSchema,
  ImportSkillResponseSchema,
  type Skill,
  SkillSchema,
  SkillStatus,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, withGateway } from '../cli.js';
import { type Entry, fieldsOf, hand, REPEAT, skillReference } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { filesBelow, partsOf, readBytes } from '../files.js';
import { plural } from '../output.js';
import { bareName, show, tableOf } from '../show.js';
import { doneLine, handedInExit, nextNotes, OWNER, READER, SCOPE, settledSkills, SKILL_COLUMNS, VERIFY_TIMEOUT_MS } from './skill-lines.js';

const ARCHIVE_BYTES_MAX = 64 * 1024 * 1024;
const FILES_MAX = 10_000;

interface SkillFileOnDisk {
  readonly path: string;
  readonly data: Uint8Array;
}

interface ExportOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly force?: boolean;
}

function exportSkill(cli: Cli, options: ExportOptions, [skill = '', to = '']: readonly string[]): Promise<number> {
  const { agent = '', user = '', force = false } = options;
  const asked = { ...skillReference(skill), agent, user };
  return withGateway(cli, async (gateway) => {
    const { files, notes } = await gateway.skills.exportSkill(asked, callSettings(cli, VERIFY_TIMEOUT_MS));
    writeSkill(to, files, force);
    for (const note of notes) cli.out.note(`${bareName(skill)}: ${note}`);
    cli.out.data({ path: to, files: files.map(({ path }) => path), notes }, `${to}: ${plural(files.length, 'file')}`);
    return EXIT.ok;
  });
}

/** Writes a skill's files below `to`. @throws CliError if a path is outside of `to`, or `to` has files and `force` is false */
export function writeSkill(to: string, files: readonly SkillFileOnDisk[], force: boolean): void {
  const there = statSync(to, { throwIfNoEntry: false });
  const isFull = there !== undefined && (!there.isDirectory() || readdirSync(to).length > 0);
  if (isFull && !force) throw new CliError(EXIT.usage, `${to} already exists`, ['--force overwrites it']);
  for (const { path, data } of files) {
    const file = resolve(to, path);
    if (!file.startsWith(`${resolve(to)}${sep}`))
      throw new CliError(EXIT.failed, `the gateway sent the unsafe path ${JSON.stringify(path)}`);
    mkdirSync(dirname(file), { recursive: true });
    // Removed first, because a link at this path would redirect the write.
    rmSync(file, { force: true });
    writeFileSync(file, data, { flag: 'wx' });
  }
}

const IMPORT_FLAGS = { ...OWNER, ...REPEAT, ...SCOPE, '--dry-run': 'show what would be stored' };

async function importSkill(cli: Cli, options: { readonly wait?: boolean }, [path = '']: readonly string[]): Promise<number> {
  const [format, files] = readSkill(path);
  const given = await fieldsOf(ImportSkillRequest_HeadSchema, IMPORT_FLAGS, options);
  const head = { agent: 'default', requestId: randomUUID(), format, ...given } as Partial<ImportSkillRequest_Head>;
  return withGateway(cli, async (gateway) => {
    const imported = await ridingOut(cli.signal, () =>
      gateway.skills.importSkill(requestsOf(head, files), callSettings(cli, VERIFY_TIMEOUT_MS)),
    );
    const ask = () =>
      Promise.all(
        imported.skills.map(({ name, agent, user, version }) => gateway.skills.getSkill({ name, agent, user, version }, callSettings(cli))),
      );
    const done = options.wait && !head.dryRun ? { ...imported, skills: await settledSkills(cli, ask) } : imported;
    show(cli.out, ImportSkillResponseSchema, done, importedText(done.skills));
    for (const note of done.notes) cli.out.note(note);
    if (head.dryRun) cli.out.note('nothing was stored');
    else for (const note of done.skills.flatMap((skill) => nextNotes(cli, skill))) cli.out.note(note);
    return handedInExit(done.skills);
  });
}

export const importedText = (skills: readonly Skill[]): string =>
  [tableOf(SkillSchema, skills, SKILL_COLUMNS), ...skills.filter(({ status }) => status === SkillStatus.REJECTED).map(doneLine)].join('\n');

async function* requestsOf(head: object, files: readonly SkillFileOnDisk[]) {
  yield { part: { case: 'head' as const, value: head } };
  for (const { path, data } of files)
    for (const part of partsOf(data)) yield { part: { case: 'file' as const, value: { path, data: part } } };
}

export function readSkill(path: string): [format: string, files: readonly SkillFileOnDisk[]] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return ['folder', readFolder(path)];
  const data = readBytes(path, ARCHIVE_BYTES_MAX);
  if (/\.(?:zip|skill)$/i.test(path)) return ['zip', [{ path: basename(path), data }]];
  if (/\.(?:tar\.gz|tgz)$/i.test(path)) return ['tar.gz', [{ path: basename(path), data }]];
  throw new CliError(EXIT.usage, `${path} is neither a folder nor a .zip or .tar.gz`, ['a skill is a folder that contains a SKILL.md']);
}

function readFolder(path: string): readonly SkillFileOnDisk[] {
  const found = filesBelow(path);
  if (found.length === 0) throw new CliError(EXIT.usage, `${path} contains no files`);
  if (found.length > FILES_MAX) throw new CliError(EXIT.usage, `${path} has ${found.length} files; a skill has at most ${FILES_MAX}`);
  return found.map((file) => ({ path: file, data: readBytes(join(path, file), ARCHIVE_BYTES_MAX) }));
}

export const TRANSFER: readonly Entry[] = [
  hand<ExportOptions>({
    command: 'export <skill> <folder>',
    help: 'write a skill as a folder in the Agent Skills format',
    flags: { ...READER, '--force': 'overwrite existing files' },
    run: exportSkill,
  }),
  hand<{ readonly wait?: boolean }>({
    command: 'import <path>',
    help: 'import a folder, .zip or .tar.gz in the Agent Skills format; the skills wait for review',
    flags: { ...IMPORT_FLAGS, '--wait': 'wait until all are verified' },
    fills: ImportSkillRequest_HeadSchema,
    run: importSkill,
  }),
];
