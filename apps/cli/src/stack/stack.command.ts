import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { listBenchmarks, runBench } from '../machine/bench.js';
import { doctor } from '../machine/doctor.js';
import { runTests, type TestOptions } from '../machine/run-tests.js';
import { integer, memoryAdapter, sandboxDriver } from '../options.js';
import { down, status } from './down.js';
import type { AskedFor } from './unapplied.js';
import { up, type UpOptions } from './up.js';

/** Only what was given: an option that has a default has a value as well where nobody asked for it. */
const givenOf = (command: Command): AskedFor =>
  Object.fromEntries(Object.entries(command.opts()).filter(([name]) => command.getOptionValueSource(name) === 'cli'));

/** `up`, `down`, `status`, `doctor`, `test`, `bench`. */
export function addStack(program: Command, start: Start): void {
  program
    .command('up')
    .description('run everything here: Redis, the four services; asks OPENAI_MODEL at OPENAI_BASE_URL')
    .option('--detach', 'return once it takes work; down stops it')
    .option('--scripted <file>', 'answer from a script instead of a model')
    .option('--rollout-workers <n>', 'processes that run tasks', integer(1, 64), 1)
    .option('--concurrency <n>', 'tasks at once in each of them', integer(1, 256), 4)
    .addOption(sandboxDriver())
    .addOption(memoryAdapter())
    .action((options: Omit<UpOptions, 'asked'>, command: Command) =>
      start(command, (cli) => up(cli, { ...options, asked: givenOf(command) })),
    );
  program
    .command('down')
    .description('stop it; its data stay')
    .action((_options: object, command: Command) => start(command, down));
  program
    .command('status')
    .description('what runs here')
    .action((_options: object, command: Command) => start(command, status));
  program
    .command('doctor')
    .description('what is there, what is missing, and what that costs')
    .action((_options: object, command: Command) => start(command, doctor));
  program
    .command('test')
    .description('every test that this machine can run')
    .argument('[filters...]', 'only files with one of these in their path, such as libs/queue or skills.int')
    .option('--cluster', 'those that need a Kubernetes instead, which is started for them')
    .action((filters: string[], options: TestOptions, command: Command) => start(command, (cli) => runTests(cli, filters, options)));
  program
    .command('bench [name]')
    .description('one benchmark of bench/, as ratios in one run; without a name, which there are')
    .allowUnknownOption()
    .allowExcessArguments()
    .action((name: string | undefined, _options: object, command: Command) =>
      start(command, (cli) => (name === undefined ? listBenchmarks(cli) : runBench(cli, name, command.args.slice(1)))),
    );
}
