import { type Command, CommanderError } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import type { GlobalOptions } from './cli.js';
import { usageError } from './errors.js';
import { buildProgram } from './program.js';

const HELP = './etude --help, or --help after any command, says what there is';

interface Started {
  readonly name: string;
  readonly globals: GlobalOptions;
}

async function run(...args: string[]): Promise<Started | null> {
  let started: Started | null = null;
  const program = buildProgram(async (command: Command) => {
    started = { name: `${command.parent?.name()} ${command.name()}`, globals: command.optsWithGlobals() };
  });
  const silence = (command: Command) => {
    command.configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
    for (const child of command.commands) silence(child);
  };
  silence(program);
  await program.parseAsync(['node', 'etude', ...args]);
  return started;
}

describe('command line', () => {
  it('takes global flags before and after the command', async () => {
    expect((await run('--json', 'tasks', 'list'))?.globals.json).toBe(true);
    expect((await run('tasks', 'list', '--json', '--address', 'h:1', '--timeout', '2.5'))?.globals).toMatchObject({
      json: true,
      address: 'h:1',
      timeout: 2_500,
    });
  });

  it.each([
    ['a number that is none', ['eval', 'run', 'f', '--limit', '0']],
    ['a label without a value', ['tasks', 'list', '--label', 'x']],
    ['a time that is none', ['sandbox', 'create', '--ttl', '10 minutes']],
    ['a status that is none', ['skills', 'list', '--status', 'done']],
    ['a promotion to nobody', ['skills', 'promote', 's']],
    ['a format it does not know', ['eval', 'run', 'f', '--format', 'csv']],
  ])('refuses %s', async (_what, args) => {
    vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
    await expect(run(...args)).rejects.toMatchObject({ name: 'CommanderError', exitCode: 1 });
    vi.restoreAllMocks();
  });
});

const refusal = async (args: readonly string[], json = true) => {
  const said = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  try {
    await buildProgram(async () => undefined, json).parseAsync(['node', 'etude', ...args]);
    throw new Error('nothing was refused');
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    expect(said).not.toHaveBeenCalled();
    return usageError(error);
  } finally {
    vi.restoreAllMocks();
  }
};

describe('errors in arguments', () => {
  it('are left to be told as every other error', async () => {
    expect(await refusal(['skills', 'list', '--jsn'], false)).toMatchObject({
      exit: 2,
      message: "unknown option '--jsn'",
      hint: ['Did you mean --json?', HELP],
    });
    expect(await refusal(['tasks', 'get'], false)).toMatchObject({ exit: 2, message: "missing required argument 'task'", hint: [HELP] });
  });

  it('say in JSON what is wrong and what was meant', async () => {
    expect(await refusal(['skills', 'lst'])).toMatchObject({
      exit: 2,
      message: "unknown command 'lst'",
      hint: ['Did you mean list?', HELP],
    });
    expect(await refusal(['skills', 'list', '--limit', 'x'])).toMatchObject({
      message: "option '--limit <n>' argument 'x' is invalid. must be a whole number from 1 to 100000",
      hint: [HELP],
    });
    expect(await refusal([])).toMatchObject({ exit: 2, message: 'a command is missing' });
  });
});
