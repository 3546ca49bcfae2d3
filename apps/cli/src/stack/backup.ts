import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { type Cli, commandLine } from '../cli.js';
import { embedderSettings, recordPath } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { keyPath, keysPath, memoryPath, proofPublicKeysPath, proofSigningKeyPath } from '../home/home.js';
import { findStack, type MemoryAdapter } from '../home/stack-state.js';
import { runNode } from '../machine/bench.js';

const MAIN = 'apps/consolidation-worker/dist/backup-main.js';
const FILES_OF_HOME = [keyPath, keysPath, proofPublicKeysPath, proofSigningKeyPath, recordPath];

/** Whether the environment names an installation outside of this home. Its settings are then those of its services. */
const isElsewhere = ({ settings }: Cli) => Boolean(settings.environment['ETUDE_REDIS_URL']);
const filesOf = (home: string) => FILES_OF_HOME.map((path) => path(home)).filter((path) => existsSync(path));
const run = (cli: Cli, args: readonly string[], env: Record<string, string>) =>
  runNode(cli, [MAIN, ...args, ...(cli.globals.json ? ['--json'] : [])], env);

/** The address of the home's running Redis, with its password. */
function redisUrl(home: string): string {
  const config = readFileSync(join(home, 'redis', 'redis.conf'), 'utf8');
  const setting = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(config)?.[1] ?? '';
  return `redis://:${setting('requirepass')}@127.0.0.1:${setting('port')}`;
}

/** `etude backup`: copies Redis, memory and keys into a new folder while the stack runs. */
export async function backup(cli: Cli, _options: object, [to = '']: readonly string[]): Promise<number> {
  const folder = resolve(to);
  if (isElsewhere(cli)) return run(cli, ['backup', folder], {});
  const state = await findStack(cli.home);
  if (!state?.ready)
    throw new CliError(EXIT.unavailable, `no stack runs in ${cli.home}`, [
      `start it: ${commandLine(cli, 'up')}`,
      'or name another installation: ETUDE_REDIS_URL and ETUDE_MEMORY_ADAPTER with its address',
    ]);
  const { memory, embedderSocket } = state;
  return run(cli, ['backup', folder, ...filesOf(cli.home)], {
    ETUDE_REDIS_URL: redisUrl(cli.home),
    ETUDE_MEMORY_ADAPTER: memory === 'sqlite' ? memory : 'qdrant',
    ETUDE_MEMORY_PATH: memoryPath(cli.home),
    ...embedderSettings(cli),
    ...(embedderSocket === null ? {} : { ETUDE_EMBEDDER_SOCKET: embedderSocket }),
  });
}

export interface RestoreOptions {
  readonly memory: MemoryAdapter;
  readonly force?: boolean;
}

/** `etude restore`: fills a home whose stack is stopped, or an installation whose services are. */
export async function restore(cli: Cli, { memory, force }: RestoreOptions, [from = '']: readonly string[]): Promise<number> {
  const folder = resolve(from);
  const args = ['restore', folder, ...(force ? ['--force'] : [])];
  if (isElsewhere(cli)) return run(cli, args, {});
  const { home } = cli;
  if (await findStack(home)) throw new CliError(EXIT.conflict, `a stack runs in ${home}`, [`stop it: ${commandLine(cli, 'down')}`]);
  mkdirSync(home, { recursive: true });
  const exit = await run(cli, [...args, '--redis-folder', join(home, 'redis')], {
    ETUDE_MEMORY_ADAPTER: memory,
    ETUDE_MEMORY_PATH: memoryPath(home),
    // The backup names the embedder of its stack.
    ...embedderSettings({ ...cli, home: folder }),
  });
  if (exit === EXIT.ok) filesOf(folder).forEach((file) => copyFileSync(file, join(home, basename(file))));
  return exit;
}
