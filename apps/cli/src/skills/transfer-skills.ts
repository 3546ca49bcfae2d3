import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { toJson } from '@bufbuild/protobuf';
import { ImportSkillResponseSchema, type Skill, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { callSettings, poll, ridingOut } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import { skillReference } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { readBytes } from '../files.js';
import { plural } from '../output.js';
import { bareName, doneLine, nextNotes, scopeOf, type ScopeWord, skillTable } from './skill-lines.js';
import { zipOf } from './zip-file.js';

const ARCHIVE_BYTES_MAX = 64 * 1024 * 1024;
const FILES_MAX = 10_000;
const PART_BYTES = 1024 * 1024;
const TRANSFER_TIMEOUT_MS = 120_000;

export interface SkillFileOnDisk {
  readonly path: string;
  readonly data: Uint8Array;
}

interface ExportOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly force?: boolean;
}

export function exportSkill(cli: Cli, options: ExportOptions, [skill = '', to = '']: readonly string[]): Promise<number> {
  const { agent = '', user = '', force = false } = options;
  const asked = { ...skillReference(skill), agent, user };
  return withGateway(cli, async (gateway) => {
    const { files, notes } = await gateway.skills.exportSkill(asked, callSettings(cli, TRANSFER_TIMEOUT_MS));
    await writeSkill(to, bareName(asked.name), files, force);
    for (const note of notes) cli.out.note(`${bareName(skill)}: ${note}`);
    cli.out.data({ path: to, files: files.map(({ path }) => path), notes }, `${to}: ${plural(files.length, 'file')}`);
    return EXIT.ok;
  });
}

/** Writes a zip where the name says so, else a folder. Nothing is written outside of it. @throws CliError */
export async function writeSkill(to: string, name: string, files: readonly SkillFileOnDisk[], force: boolean): Promise<void> {
  const there = statSync(to, { throwIfNoEntry: false });
  const isZip = /\.zip$/i.test(to);
  if (/\.(?:tar\.gz|tgz)$/i.test(to)) throw new CliError(EXIT.usage, `${to}: exports are folders or .zip`);
  const isFull = there !== undefined && (!there.isDirectory() || readdirSync(to).length > 0);
  if (isFull && !force) throw new CliError(EXIT.usage, `${to} is there already`, ['--force overwrites it']);
  try {
    if (isZip) {
      const entries = files.map(({ path, data }) => ({ path: `${folderName(name)}/${inside(path)}`, data }));
      writeFileSync(to, zipOf(entries), { mode: 0o600 });
      return;
    }
    for (const { path, data } of files) {
      const file = join(to, inside(path));
      mkdirSync(dirname(file), { recursive: true });
      // Never through a link that stands there.
      rmSync(file, { force: true });
      writeFileSync(file, data, { flag: 'wx' });
    }
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${to} cannot be written: ${(error as Error).message}`, [], { cause: error });
  }
}

/** Folders of the Agent Skills format have names with "-". */
const folderName = (name: string) => name.replaceAll('_', '-');

/** @throws CliError for a path that leads out of the folder */
function inside(path: string): string {
  const parts = path.split('/');
  if (path === '' || path.includes('\0') || path.includes('\\') || parts.some((part) => part === '' || part === '.' || part === '..'))
    throw new CliError(EXIT.failed, `the gateway sent a file with the path ${JSON.stringify(path)}, which is not written`);
  return path;
}

export interface ImportSkillOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly scope?: ScopeWord;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
  readonly requestId?: string;
}

const FORMATS: ReadonlyArray<readonly [RegExp, string]> = [
  [/\.(?:zip|skill)$/i, 'zip'],
  [/\.(?:tar\.gz|tgz)$/i, 'tar.gz'],
];

export function importSkill(cli: Cli, options: ImportSkillOptions, [path = '']: readonly string[]): Promise<number> {
  const { agent = 'default', user = '', scope = 'agent', dryRun = false, wait = false, requestId = randomUUID() } = options;
  const [format, files] = readSkill(path);
  const head = { agent, user, scope: scopeOf(scope), dryRun, requestId, format };
  return withGateway(cli, async (gateway) => {
    const imported = await ridingOut(cli.signal, () =>
      gateway.skills.importSkill(requestsOf(head, files), callSettings(cli, TRANSFER_TIMEOUT_MS)),
    );
    const done = wait && !dryRun ? { ...imported, skills: await settledSkills(cli, gateway, imported.skills) } : imported;
    cli.out.data(toJson(ImportSkillResponseSchema, done, { alwaysEmitImplicit: true }), importedText(done.skills));
    for (const note of done.notes) cli.out.note(note);
    if (dryRun) cli.out.note('nothing was stored');
    else for (const note of done.skills.flatMap((skill) => nextNotes(cli, skill))) cli.out.note(note);
    return importExit(done.skills);
  });
}

const isRejected = ({ status }: Skill) => status === SkillStatus.REJECTED;

/** All of them, then why each was rejected that was; '' where there are none. */
export const importedText = (skills: readonly Skill[]): string =>
  skills.length === 0 ? '' : [skillTable(skills), ...skills.filter(isRejected).map(doneLine)].join('\n');

/** As `add` ends: a skill that was rejected has failed, whatever became of the others. */
export const importExit = (skills: readonly Skill[]): number => (skills.length === 0 || skills.some(isRejected) ? EXIT.failed : EXIT.ok);

/** The skills once their verification is over. Each waits for at most two minutes. */
async function settledSkills(cli: Cli, gateway: Gateway, skills: readonly Skill[]): Promise<Skill[]> {
  const settled: Skill[] = [];
  for (const imported of skills) {
    const { name, agent, user, version } = imported;
    const until = performance.now() + TRANSFER_TIMEOUT_MS;
    const skill = await poll(cli, imported, {
      isOver: ({ status }) => !UNSETTLED.has(status) || performance.now() > until,
      ask: () => gateway.skills.getSkill({ name, agent, user, version }, callSettings(cli)),
      status: () => `verifying ${bareName(name)} …`,
    });
    settled.push(skill);
  }
  return settled;
}

const UNSETTLED: ReadonlySet<SkillStatus> = new Set([SkillStatus.CANDIDATE, SkillStatus.VERIFIED]);

async function* requestsOf(head: object, files: readonly SkillFileOnDisk[]) {
  yield { part: { case: 'head' as const, value: head } };
  for (const { path, data } of files)
    for (let at = 0; at === 0 || at < data.byteLength; at += PART_BYTES)
      yield { part: { case: 'file' as const, value: { path, data: data.subarray(at, at + PART_BYTES) } } };
}

/** The format, and the files of a folder or the one that is an archive. @throws CliError */
export function readSkill(path: string): [format: string, files: readonly SkillFileOnDisk[]] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory()) return ['folder', readFolder(path)];
  const format = FORMATS.find(([pattern]) => pattern.test(path))?.[1];
  if (stat !== undefined && format === undefined)
    throw new CliError(EXIT.usage, `${path} is neither a folder nor a .zip or .tar.gz`, ['a skill is a folder with a SKILL.md in it']);
  return [format ?? '', [{ path: path.split(sep).at(-1) ?? path, data: readBytes(path, ARCHIVE_BYTES_MAX) }]];
}

/** Links are not followed: what they lead to is not part of the skill. */
function readFolder(path: string): readonly SkillFileOnDisk[] {
  const root = resolve(path);
  const found = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  if (found.length === 0) throw new CliError(EXIT.usage, `${path} has no files in it`);
  if (found.length > FILES_MAX) throw new CliError(EXIT.usage, `${path} has ${found.length} files; a skill has at most ${FILES_MAX}`);
  const files = found.map((entry) => join(entry.parentPath, entry.name)).toSorted((a, b) => (a < b ? -1 : 1));
  let left = ARCHIVE_BYTES_MAX;
  return files.map((file) => {
    const data = readBytes(file, left);
    left -= data.byteLength;
    return { path: relative(root, file).split(sep).join('/'), data };
  });
}
