import { type Command, Option } from 'commander';
import type { Start } from '../cli.js';
import { integer } from '../options.js';
import { type ConsolidateOptions, consolidate } from './consolidate.js';
import { createKey, type KeyOptions, listKeys, ROLES } from './keys.js';
import { deadLetters, listQueues, redrive, type RedriveOptions } from './queues.js';

function addQueues(program: Command, start: Start): void {
  const queues = program.command('queues').description('for operators: what waits, what failed for good');
  queues
    .command('list')
    .description('waiting, active, delayed and dead jobs of each, and its workers')
    .action((_options: object, command: Command) => start(command, listQueues));
  queues
    .command('dead <queue>')
    .description('jobs that ran out of attempts or did not parse, newest first')
    .option('--limit <n>', 'how many', integer(1, 100_000), 50)
    .action((queue: string, { limit }: { limit: number }, command: Command) => start(command, (cli) => deadLetters(cli, queue, limit)));
  queues
    .command('redrive <queue> [ids...]')
    .description('put dead letters back to work')
    .option('--all', 'all of them')
    .action((queue: string, ids: string[], options: RedriveOptions, command: Command) =>
      start(command, (cli) => redrive(cli, queue, ids, options)),
    );
}

function addKeys(program: Command, start: Start): void {
  const keys = program.command('keys').description('API keys of the local stack');
  keys
    .command('create')
    .description('make a key and print it; only its digest is kept')
    .requiredOption('--tenant <tenant>', 'whose data it opens')
    .addOption(new Option('--role <role...>', 'what it may').choices([...ROLES]).default(['user']))
    .option('--name <name>', 'what it is for', '')
    .action((options: KeyOptions, command: Command) => start(command, (cli) => createKey(cli, options)));
  keys
    .command('list')
    .description('digests, tenants and roles')
    .action((_options: object, command: Command) => start(command, listKeys));
}

/** `consolidate`, `queues`, `keys`. */
export function addAdmin(program: Command, start: Start): void {
  program
    .command('consolidate')
    .description('turn recent episodes into facts and verified skills, now')
    .option('--dry-run', 'plan only')
    .option('--agent <name>', 'only this agent (default: all)')
    .option('--days <n>', 'how far back', integer(1, 3_650), 7)
    .option('--request-id <id>', 'makes a repeat harmless')
    .option('--detach', 'do not wait for its end')
    .action((options: ConsolidateOptions, command: Command) => start(command, (cli) => consolidate(cli, options)));
  addQueues(program, start);
  addKeys(program, start);
}
