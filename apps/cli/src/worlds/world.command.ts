import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { CallToolResponseSchema } from '@etude/contracts/gen/etude/v1/tools_pb';
import { MoveInWorldRequestSchema, type World, WorldAgentSchema, Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';
import type { Command } from 'commander';
import type { JsonObject } from '@bufbuild/protobuf';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, type Start, withGateway } from '../cli.js';
import { addNoun, CONFIRM, confirmed, hand, LIMIT, plain, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { integer, repeated } from '../options.js';
import { jsonOf, tableOf } from '../show.js';

/** The arguments of each move, in the order in which they are typed. The last one takes the rest of the line. */
const MOVES: Readonly<Record<string, readonly string[]>> = {
  observe_location: ['radius'],
  move_to: ['x', 'y'],
  gather_resource: ['resource'],
  interact_with_agent: ['name', 'action', 'message'],
};
const NUMBERS = new Set(['radius', 'x', 'y']);
const HINT = Object.entries(MOVES).map(([tool, names]) => [tool, ...names.map((name) => name.toUpperCase())].join(' '));

interface TypedMove {
  readonly tool: string;
  readonly arguments: JsonObject;
}

/** Reads a move such as "move_to 3 4" or "interact_with_agent @guide-1 talk where is ore". @throws CliError */
export function moveOf(line: string): TypedMove {
  const [tool = '', ...words] = line.trim().split(/\s+/);
  const names = Object.hasOwn(MOVES, tool) ? MOVES[tool] : undefined;
  if (names === undefined) throw new CliError(EXIT.usage, `${JSON.stringify(tool)} is not a move`, HINT);
  const values = tool === 'interact_with_agent' ? [...words.slice(0, 2), words.slice(2).join(' ')].filter((one) => one !== '') : words;
  if (values.length > names.length) throw new CliError(EXIT.usage, `${tool} has too many arguments`, HINT);
  const typed = values.map((value, i) => [names[i] ?? '', NUMBERS.has(names[i] ?? '') ? numberOf(tool, value) : value] as const);
  return { tool, arguments: Object.fromEntries(typed) };
}

function numberOf(tool: string, text: string): number {
  if (/^-?\d{1,6}$/.test(text)) return Number(text);
  throw new CliError(EXIT.usage, `${tool}: ${JSON.stringify(text)} is not a whole number`, HINT);
}

const LEGEND = '. plain   T forest   n hill   ^ mountain   ~ water   & inhabitant   @ agent';

function worldText({ name, seed, width, height, tick, agents, rows }: World): string {
  const title = `${name}: seed ${seed}, ${width}x${height}, tick ${tick}`;
  const shown = tableOf(WorldAgentSchema, agents, ['name', 'x', 'y', 'stamina', 'inventory']);
  return [title, rows.join('\n'), LEGEND, shown].filter((part) => part !== '').join('\n\n');
}

interface RunOptions {
  readonly agent: string;
  readonly user?: string;
  readonly move?: readonly string[];
}

/** Makes the moves in order, and prints each answer. A failed move doesn't stop the others. */
async function run(cli: Cli, { agent, user = '', move }: RunOptions, [world = '']: readonly string[]): Promise<number> {
  // Every given move is read before the first is made.
  const given = move?.map(moveOf);
  return withGateway(cli, async ({ worlds }) => {
    let exit: number = EXIT.ok;
    for await (const typed of given ?? movesIn(createInterface({ input: process.stdin }))) {
      const request = { ...typed, name: resource('world', world), agent, user, requestId: randomUUID() };
      const answer = await ridingOut(cli.signal, () => worlds.moveInWorld(request, callSettings(cli)));
      cli.out.data(jsonOf(CallToolResponseSchema, answer), answer.success ? JSON.stringify(answer.result) : '');
      if (!answer.success) cli.out.note(`${typed.tool}: ${answer.error}`);
      if (!answer.success) exit = EXIT.failed;
    }
    return exit;
  });
}

async function* movesIn(lines: AsyncIterable<string>) {
  for await (const line of lines) if (line.trim() !== '') yield moveOf(line);
}

const WORLDS = [
  plain(Worlds.method.createWorld, {
    command: 'new <world>',
    help: 'make a world for agents to live in; the same seed and size give the same land',
    flags: {
      '--seed <text>': 'default: the name',
      '--size <n>': { help: 'width and height, in cells', usual: 32, parse: integer(8, 128) },
    },
    ask: (request, { options }) => ({ ...request, width: Number(options['size']), height: Number(options['size']) }),
    repeat: true,
    text: worldText,
  }),
  plain(Worlds.method.getWorld, { command: 'show <world>', help: 'show the map of a world and its agents', text: worldText }),
  plain(Worlds.method.listWorlds, {
    command: 'list',
    help: 'list the worlds',
    flags: LIMIT(100),
    columns: ['name', 'seed', 'width', 'height', 'tick', 'update_time'],
  }),
  hand<RunOptions>({
    command: 'run <world>',
    help: 'make moves in a world, one per line of stdin, such as "move_to 3 4"',
    fills: MoveInWorldRequestSchema,
    flags: {
      '--agent <name>': { help: 'whose moves', usual: 'default' },
      '--user <name>': 'the user that the agent works for',
      '--move <move>': { help: 'a move, instead of stdin; repeatable', parse: repeated },
    },
    run,
  }),
  plain(Worlds.method.deleteWorld, {
    command: 'delete <world>',
    help: 'delete a world with everybody in it',
    flags: CONFIRM,
    ask: confirmed,
    text: () => '',
  }),
];

export function addWorlds(program: Command, start: Start): void {
  addNoun(program, start, 'world', 'worlds that agents live in, to train and test them', WORLDS);
}
