import { type Command, CommanderError } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import type { GlobalOptions } from './cli.js';
import { usageError } from './errors.js';
import { buildProgram } from './program.js';

const HELP = './etude --help lists the commands; --help after a command lists its flags';

async function globalsOf(...args: string[]): Promise<GlobalOptions | undefined> {
  let globals: GlobalOptions | undefined;
  const start = async (command: Command) => void (globals = command.optsWithGlobals());
  await buildProgram(start).parseAsync(['node', 'etude', ...args]);
  return globals;
}

it('takes global flags before and after the command', async () => {
  expect(await globalsOf('--json', 'tasks', 'list')).toMatchObject({ json: true });
  const after = await globalsOf('tasks', 'list', '--json', '--address', 'h:1', '--timeout', '2.5');
  expect(after).toMatchObject({ json: true, address: 'h:1', timeout: 2_500 });
});

it.each([
  ['nouns', ['sandb'], ['sandbox']],
  ['verbs', ['skills', 'li'], ['list']],
  ['flags', ['skills', 'list', '--st'], ['--status']],
  ['values of a flag', ['skills', 'list', '--status', 'pen'], ['pending_review']],
])('completes %s for a shell', async (_, words, expected) => {
  const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  try {
    await buildProgram(async () => undefined).parseAsync(['complete', '--', ...words], { from: 'user' });
    const lines = said.mock.calls.map(([line]) => String(line));
    expect(lines.filter((line) => !line.startsWith(':')).map((line) => line.split('\t')[0])).toEqual(expected);
  } finally {
    vi.restoreAllMocks();
  }
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
  it.each([false, true])('are returned with a hint, and are not printed (--json: %s)', async (json) => {
    expect(await refusal(['skills', 'lst'], json)).toMatchObject({
      exit: 2,
      message: "unknown command 'lst'",
      hint: ['Did you mean list?', HELP],
    });
  });

  it('name a missing command', async () => {
    expect(await refusal([])).toMatchObject({ exit: 2, message: 'a command is missing' });
  });

  it.each([
    ['tasks list --label x', 'key=value'],
    ['sandbox create --ttl 10_minutes', 'a time such as'],
    ['skills list --status done', 'Allowed choices'],
    ['skills promote s', '--scope'],
    ['skills list --jsn', "unknown option '--jsn'"],
    ['tasks get', "missing required argument 'task'"],
    ['skills list --limit x', 'must be a whole number from 1 to 100000'],
  ])('name what is wrong in %s', async (words, message) => {
    expect((await refusal(words.split(' ')))?.message).toContain(message);
  });
});
