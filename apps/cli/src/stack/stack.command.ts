import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { type Entry, type Flag, hand } from '../command.js';
import { addBench, runNode } from '../machine/bench.js';
import { doctor } from '../machine/doctor.js';
import { doctorCluster } from '../machine/doctor-cluster.js';
import { runTests, type TestOptions } from '../machine/tests.js';
import { backup, restore, type RestoreOptions } from './backup.js';
import { down, status } from './down.js';
import { MEMORY_ADAPTERS, SANDBOX_DRIVERS } from '../home/stack-state.js';
import { up, type UpOptions } from './up.js';

export const SANDBOX_FLAG: Flag = {
  help: 'run code in bubblewrap here, or in pods of the KUBECONFIG cluster or of a new cluster',
  choices: SANDBOX_DRIVERS,
  usual: 'local',
};

/** Builds the site into a folder, or into the cache and serves it there. */
const docs = (cli: Cli, { out }: { readonly out?: string }) =>
  runNode(cli, ['tools/docs-site/build.mjs', ...(out === undefined ? [join(cli.root, '.etude/cache/docs'), '--serve'] : [resolve(out)])]);

interface DoctorOptions {
  readonly cluster?: boolean;
  readonly namespace: string;
}

const MEMORY_FLAG: Flag = {
  help: 'keep memory in a file here, or in the Qdrant server at ETUDE_QDRANT_URL',
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
    help: 'fill the stopped, empty stack, or ETUDE_REDIS_URL and ETUDE_MEMORY_*, from a backup',
    flags: { '--memory <where>': MEMORY_FLAG, '--force': 'replace the data of the stopped stack' },
    run: restore,
  }),
  hand<DoctorOptions>({
    command: 'doctor',
    help: 'check the programs and settings that a stack needs, or an installation in a cluster, and say what is missing',
    flags: {
      '--cluster': 'check the installation in the current context of kubectl',
      '--namespace <name>': { help: 'its namespace', usual: 'etude' },
    },
    run: async (cli, { cluster, namespace }) => (cluster ? doctorCluster(cli, namespace) : doctor(cli)),
  }),
  hand<TestOptions>({
    command: 'test [filters...]',
    help: 'run every test that this machine can run; a filter is a part of a path',
    flags: {
      '--cluster': 'start Kubernetes and run the tests that need it',
      '--all': 'with --cluster: the slow ones too, which install the chart',
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
