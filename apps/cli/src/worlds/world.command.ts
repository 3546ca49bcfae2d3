import type { JsonObject } from '@bufbuild/protobuf';
import { MoveInWorldRequestSchema, type World, WorldAgentSchema, Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';
import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { addNoun, CONFIRM, confirmed, LIMIT, plain } from '../command.js';
import { EXIT } from '../errors.js';
import { jsonIn, messageOf } from '../files.js';
import { integer } from '../options.js';
import { tableOf } from '../show.js';

const LEGEND = '. plain   T forest   n hill   ^ mountain   ~ water   & inhabitant   @ agent';

function worldText({ name, seed, width, height, tick, agents, rows }: World): string {
  const title = `${name}: seed ${seed}, ${width}x${height}, tick ${tick}`;
  const shown = tableOf(WorldAgentSchema, agents, ['name', 'x', 'y', 'stamina', 'inventory']);
  return [title, rows.join('\n'), LEGEND, shown].filter((part) => part !== '').join('\n\n');
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
  plain(Worlds.method.moveInWorld, {
    command: 'run <world> <tool> [arguments]',
    help: 'make a move in a world, with its arguments as JSON, such as move_to \'{"x": 3, "y": 4}\'',
    flags: {
      '--agent <name>': { help: 'agent that makes the move', usual: 'default' },
      '--user <name>': 'the user that the agent works for',
    },
    ask: (request, { args: [, , json = '{}'] }) => {
      const told = { arguments: jsonIn(json, 'the arguments') };
      return { ...request, arguments: messageOf(MoveInWorldRequestSchema, told as JsonObject, 'the arguments are wrong', []).arguments };
    },
    text: ({ success, result }) => (success ? JSON.stringify(result) : ''),
    notes: ({ success, error }) => (success ? [] : [error]),
    exit: ({ success }) => (success ? EXIT.ok : EXIT.failed),
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
