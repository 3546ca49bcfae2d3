import { readFileSync } from 'node:fs';
import tab from '@bomb.sh/tab/commander';
import { Command, CommanderError, Option } from 'commander';
import { z } from 'zod';
import { addAdmin } from './admin/admin.command.js';
import { createCli, type GlobalOptions, readSettings, type Start } from './cli.js';
import { addDemo } from './demo/demo.js';
import { addEmbedder } from './embedder/embedder.js';
import { addEval } from './eval/eval.command.js';
import { addLift } from './memory/upkeep.js';
import { addMcp } from './mcp/serve-mcp.js';
import { addMemory } from './memory/memory.command.js';
import { duration } from './options.js';
import { addSandbox } from './sandbox/sandbox.command.js';
import { addSkills } from './skills/skills.command.js';
import { addStack } from './stack/stack.command.js';
import { addTasks, addUsage } from './tasks/tasks.command.js';
import { addWorlds } from './worlds/world.command.js';
import { CliError, EXIT, isCancelled, usageError } from './errors.js';
import { Output, printable, printableJson, type Terminal } from './output.js';

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

/** The whole command line. Wrong flags throw a CommanderError. Without a command, the help is printed on stderr, except with `json`. */
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
  // Set first, because the commands that are added later inherit this setting.
  program.configureOutput({ outputError: () => undefined, ...(json ? { writeErr: () => undefined } : {}) });
  for (const add of NOUNS) add(program, start);
  // Added last, because it reads all commands. `completion bash` prints a script that calls the hidden command `complete`.
  tab(program, { completionCommandName: 'completion' });
  program.commands.find((one) => one.name() === 'completion')?.description('print a script that completes commands and flags in a shell');
  return program;
}

interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  readonly signal: AbortSignal;
}

function isInterruption(error: unknown, { aborted, reason }: AbortSignal): boolean {
  if (!aborted) return false;
  return error === reason || (error instanceof Error && (error.name === 'AbortError' || isCancelled(error.cause ?? error)));
}

function report(error: unknown, json: boolean, surroundings: Surroundings): number {
  const { stderr, signal } = surroundings;
  if (error instanceof CommanderError) {
    const usage = usageError(error);
    if (usage === null) return EXIT.ok;
    // For a missing command, commander has printed the help already.
    return error.code === 'commander.help' && !json ? usage.exit : report(usage, json, surroundings);
  }
  if (isInterruption(error, signal)) return EXIT.interrupted;
  const known = error instanceof CliError;
  const message = error instanceof Error ? error.message : String(error);
  const hint = known ? error.hint : [];
  const code = known && error.code !== null ? { code: error.code } : {};
  if (json) stderr.write(`${printableJson(JSON.stringify({ error: message, ...code, hint }))}\n`);
  else stderr.write(printable([`etude: ${message}`, ...hint.map((line) => `  ${line}`), ''].join('\n')));
  if (!known && !json) stderr.write(printable(`${(error as Error).stack ?? ''}\n`));
  return known ? error.exit : EXIT.internal;
}

/** Runs one command line, and prints its failure on stderr. @param words after the program's name @returns the exit code */
export async function runCommand(words: readonly string[], surroundings: Surroundings): Promise<number> {
  const { environment, stdout, stderr, signal } = surroundings;
  let exit: number = EXIT.ok;
  let json = words.includes('--json');
  const start: Start = async (command, handler) => {
    const globals = command.optsWithGlobals<GlobalOptions>();
    json = globals.json === true;
    exit = await handler(createCli(readSettings(environment), globals, signal, new Output(stdout, stderr, json)));
  };
  try {
    await buildProgram(start, json).parseAsync(words, { from: 'user' });
    return exit;
  } catch (error) {
    return report(error, json, surroundings);
  }
}
