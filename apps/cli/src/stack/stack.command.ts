import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { type Entry, type Flag, hand } from '../command.js';
import { addBench } from '../machine/bench.js';
import { doctor } from '../machine/doctor.js';
import { runTests, type TestOptions } from '../machine/tests.js';
import { down, status } from './down.js';
import { MEMORY_ADAPTERS, SANDBOX_DRIVERS } from '../home/stack-state.js';
import { up, type UpOptions } from './up.js';

export const SANDBOX_FLAG: Flag = {
  help: 'in bubblewrap here, or in pods of KUBECONFIG or a cluster of its own',
  choices: SANDBOX_DRIVERS,
  usual: 'local',
};

const ENTRIES: readonly Entry[] = [
  hand<UpOptions>({
    command: 'up',
    help: 'run everything here: Redis, the four services; asks OPENAI_MODEL at OPENAI_BASE_URL',
    flags: {
      '--detach': 'return once it takes work; down stops it',
      '--scripted <file>': 'answer from a script instead of a model',
      '--sandbox <where>': SANDBOX_FLAG,
      '--memory <where>': {
        help: 'in a file here, or in the Qdrant of ETUDE_QDRANT_URL',
        choices: MEMORY_ADAPTERS,
        usual: 'sqlite',
      },
    },
    run: up,
  }),
  hand({ command: 'down', help: 'stop it; its data stay', run: down }),
  hand({ command: 'status', help: 'what runs here', run: status }),
  hand({ command: 'doctor', help: 'what is there, what is missing, and what that costs', run: doctor }),
  hand<TestOptions>({
    command: 'test [filters...]',
    help: 'every test that this machine can run; a filter is a part of a path',
    flags: { '--cluster': 'the tests that need a Kubernetes, which is started for them' },
    run: (cli, options, filters) => runTests(cli, filters, options),
  }),
];

/** `up`, `down`, `status`, `doctor`, `test`, `bench`. */
export function addStack(program: Command, start: Start): void {
  for (const entry of ENTRIES) entry(program, start);
  addBench(program, start);
}
