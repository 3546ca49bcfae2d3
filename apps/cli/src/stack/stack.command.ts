import { basename, join, resolve } from 'node:path';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { type Cli, commandLine, type Start } from '../cli.js';
import { type Entry, type Flag, hand } from '../command.js';
import { addBench, runNode, runTests, type TestOptions } from '../machine/tests.js';
import { doctor } from '../machine/doctor.js';
import { doctorCluster } from '../machine/doctor-cluster.js';
import { findStack, MEMORY_ADAPTERS, SANDBOX_DRIVERS } from '../home/stack-state.js';
import { embedderSettings, recordPath } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { keyPath, keysPath, memoryPath, proofPublicKeysPath, proofSigningKeyPath } from '../home/home.js';
import { down, status } from './down.js';
import { up, type UpOptions } from './up.js';

const MAIN = 'apps/consolidation-worker/dist/backup-main.js';
const FILES_OF_HOME = [keyPath, keysPath, proofPublicKeysPath, proofSigningKeyPath, recordPath];

/** Whether the environment names another installation than this home, with all settings of that installation. */
const isElsewhere = ({ settings }: Cli) => Boolean(settings.environment['ETUDE_REDIS_URL']);
const filesOf = (home: string) => FILES_OF_HOME.map((path) => path(home)).filter((path) => existsSync(path));
const run = (cli: Cli, args: readonly string[], env: Record<string, string>) =>
  runNode(cli, [MAIN, ...args, ...(cli.globals.json ? ['--json'] : [])], env);

function redisUrl(home: string): string {
  const config = readFileSync(join(home, 'redis', 'redis.conf'), 'utf8');
  const setting = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(config)?.[1] ?? '';
  return `redis://:${setting('requirepass')}@127.0.0.1:${setting('port')}`;
}

async function backup(cli: Cli, _options: object, [to = '']: readonly string[]): Promise<number> {
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

type RestoreOptions = Pick<UpOptions, 'memory'> & { readonly force?: boolean };

async function restore(cli: Cli, { memory, force }: RestoreOptions, [from = '']: readonly string[]): Promise<number> {
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

export const SANDBOX_FLAG: Flag = {
  help: 'local: bubblewrap here; kubernetes: pods of the KUBECONFIG cluster, or of a new one',
  choices: SANDBOX_DRIVERS,
  usual: 'local',
};

const docs = (cli: Cli, { out }: { readonly out?: string }) =>
  runNode(cli, ['tools/docs-site/build.mjs', ...(out === undefined ? [join(cli.root, '.etude/cache/docs'), '--serve'] : [resolve(out)])]);

const MEMORY_FLAG: Flag = {
  help: 'sqlite: a file here; qdrant: the server at ETUDE_QDRANT_URL',
  choices: MEMORY_ADAPTERS,
  usual: 'sqlite',
};

const ENTRIES: readonly Entry[] = [
  hand<UpOptions>({
    command: 'up',
    help: 'start Redis and the four services here; the model is OPENAI_MODEL at OPENAI_BASE_URL',
    flags: {
      '--detach': 'return once the stack accepts tasks; `etude down` stops the stack',
      '--scripted <file>': 'answer from a script instead of a model',
      '--sandbox <where>': SANDBOX_FLAG,
      '--memory <where>': MEMORY_FLAG,
    },
    run: up,
  }),
  hand({ command: 'down', help: 'stop the stack and keep its data', run: down }),
  hand({ command: 'status', help: 'show the addresses and processes of the stack', run: status }),
  hand({
    command: 'backup <folder>',
    help: 'copy Redis, memory and keys of the running stack, or of ETUDE_REDIS_URL and ETUDE_MEMORY_*, into a new folder',
    run: backup,
  }),
  hand<RestoreOptions>({
    command: 'restore <folder>',
    help: 'restore a backup into the stopped, empty stack, or into ETUDE_REDIS_URL and ETUDE_MEMORY_*',
    flags: { '--memory <where>': MEMORY_FLAG, '--force': 'replace the data of the stopped stack' },
    run: restore,
  }),
  hand<{ readonly cluster?: boolean; readonly namespace: string }>({
    command: 'doctor',
    help: 'check the programs and settings that a stack needs, or an installation in a cluster, and say what is missing',
    flags: {
      '--cluster': 'check the installation in the current context of kubectl',
      '--namespace <name>': { help: 'namespace of the installation', usual: 'etude' },
    },
    run: async (cli, { cluster, namespace }) => (cluster ? doctorCluster(cli, namespace) : doctor(cli)),
  }),
  hand<TestOptions>({
    command: 'test [filters...]',
    help: 'run every test that this machine can run; a filter is a part of a path',
    flags: {
      '--cluster': 'start Kubernetes and run the tests that need it',
      '--all': 'with --cluster: also run the slow tests, which install the chart',
    },
    run: (cli, options, filters) => runTests(cli, filters, options),
  }),
  hand<{ readonly out?: string }>({
    command: 'docs',
    help: 'build the documentation with a search, and show it in a browser until Ctrl-C',
    flags: { '--out <dir>': 'only build it, into this folder' },
    run: docs,
  }),
];

export function addStack(program: Command, start: Start): void {
  for (const entry of ENTRIES) entry(program, start);
  addBench(program, start);
}
