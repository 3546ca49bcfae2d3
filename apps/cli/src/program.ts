import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { z } from 'zod';
import { addAdmin } from './admin/admin.command.js';
import type { Start } from './cli.js';
import { addDemo } from './demo/demo.js';
import { addEmbedder } from './embedder/embedder.js';
import { addEval } from './eval/eval.command.js';
import { addLift } from './memory/lift.js';
import { addMcp } from './mcp/serve-mcp.js';
import { addMemory } from './memory/memory.command.js';
import { duration } from './options.js';
import { addSandbox } from './sandbox/sandbox.command.js';
import { addSkills } from './skills/skills.command.js';
import { addStack } from './stack/stack.command.js';
import { addTasks, addUsage } from './tasks/tasks.command.js';
import { addWorlds } from './worlds/world.command.js';

const VERSION = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))).version;

const NOUNS = [
  addStack,
  addDemo,
  addTasks,
  addSandbox,
  addMemory,
  addLift,
  addUsage,
  addSkills,
  addWorlds,
  addMcp,
  addAdmin,
  addEmbedder,
  addEval,
];

/** The whole command line. Wrong flags throw a CommanderError. A missing command prints its help on stderr, except with `json`. */
export function buildProgram(start: Start, json = false): Command {
  const program = new Command('etude')
    .description('Solves tasks by writing code, running the code in a sandbox, and learning from the results.')
    .addOption(new Option('--json', 'one JSON value on stdout, or one per line for streams'))
    .addOption(new Option('--address <host:port>', 'address of the gateway (ETUDE_ADDRESS; default: the stack of this checkout)'))
    .addOption(new Option('--api-key <key>', 'API key of the caller (ETUDE_API_KEY)'))
    .addOption(new Option('--home <dir>', 'folder with the state of the local stack (ETUDE_HOME; default: .etude in the checkout)'))
    .addOption(new Option('--timeout <seconds>', 'timeout of a single call').argParser(duration).default(30_000, '30'))
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .showSuggestionAfterError()
    .version(VERSION, '--version', 'print the version')
    .exitOverride();
  // Set before the commands are added, because they inherit it.
  program.configureOutput({ outputError: () => undefined, ...(json ? { writeErr: () => undefined } : {}) });
  for (const add of NOUNS) add(program, start);
  return program;
}
