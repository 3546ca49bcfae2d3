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
  it.each([
    'eval retrieval --format beir dir --adapter sqlite --embedder lexical',
    'tasks submit --prompt x',
    'tasks get t1',
    'tasks list',
    'tasks cancel t1',
    'tasks watch t1',
    'sandbox create --ttl 10m --memory 64 --label a=b',
    'sandbox list --state open',
    'sandbox get s1',
    'sandbox run 1+1',
    'sandbox exec s1 1+1 --wall 500ms',
    'sandbox repl s1',
    'sandbox upload s1 file',
    'sandbox download s1 path -',
    'sandbox files s1',
    'sandbox rm s1 path',
    'sandbox renew s1 --ttl 2h',
    'sandbox close s1',
    'skills list',
    'skills get s@2 --code',
    'skills add f.py --test t.json --test u.py --tag a --category x.y --wait',
    'skills add - --name s --scope tenant --package numpy==2.3.1',
    'skills edit s f.py',
    'skills test f.py',
    'skills verify s',
    'skills versions s',
    'skills review s@2',
    'skills approve s --digest d --merge t',
    'skills reject s --reason no',
    'skills rollback s --to 1',
    'skills deprecate s --replaced-by t',
    'skills archive s@1',
    'skills restore s',
    'skills promote s --scope user',
    'skills use s a=1 b=2',
    'skills use s --json-args {} --stdin -',
    'skills search words --similarity-min 0.5',
    'skills categories text',
    'skills diff s --from 1 --to 2',
    'skills export s dir',
    'skills import dir.zip --dry-run',
    'skills request s words --example {}',
    'skills wanted w1',
    'skills wanted w1 --user ann',
    'skills withdraw w1 --reason done',
    'skills prune --unused-days 30 --dry-run',
    'skills prune --undo p1',
    'skills revoke documents/d1 --dry-run',
    'skills stats',
    'agents list',
    'agents get a',
    'agents set a enabled=true max_skills=3',
    'memory search words',
    'queues list',
    'queues dead rollout.run',
    'queues redrive rollout.run --all',
    'keys create --tenant acme',
    'keys list',
    'eval run f --format mbpp',
  ])('knows %s', async (line) => {
    expect((await run(...line.split(' ')))?.name).toBe(line.split(' ').slice(0, 2).join(' '));
  });

  it.each(['up', 'down', 'status', 'doctor', 'test', 'bench', 'bench x', 'demo', 'consolidate'])('knows %s', async (line) => {
    expect((await run(...line.split(' ')))?.name).toBe(`etude ${line.split(' ')[0]}`);
  });

  it('takes global flags before and after the command', async () => {
    expect((await run('--json', 'tasks', 'list'))?.globals.json).toBe(true);
    expect((await run('tasks', 'list', '--json', '--address', 'h:1', '--timeout', '2.5'))?.globals).toMatchObject({
      json: true,
      address: 'h:1',
      timeout: 2.5,
    });
  });

  it.each([
    ['an unknown command', ['tasks', 'lst']],
    ['an unknown flag', ['tasks', 'list', '--nope']],
    ['a number that is none', ['eval', 'run', 'f', '--limit', '0']],
    ['a missing argument', ['tasks', 'get']],
    ['watch together with wait', ['tasks', 'submit', '--prompt', 'x', '--watch', '--wait']],
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
