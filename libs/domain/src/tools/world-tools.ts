import { z } from 'zod';
import type { Scope } from '@etude/contracts/memory';
import { ACTIONS, type Move, SEEN, type WorldOutcome } from '../world/apply-move.js';
import { defineTool, type ToolDefinition } from './tool-definition.js';

const NO_WORLD = 'This task is in no world. Name one with the label world=NAME';
const Coordinate = z.number().int();
const Position = z.strictObject({ x: Coordinate, y: Coordinate });
const Stamina = z.number().describe('0 to 1.');
const Inventory = z.record(z.string(), z.number().int());
const World = z.string().min(1).max(64).optional().describe('Name of the world; default: that of the task.');

/**
 * Applies a move in the world of that name. A repeat with the same id changes nothing and returns the first outcome. Only an observation is made
 * again.
 *
 * @param moveId unique for the mover and the world
 * @throws EtudeError NOT_FOUND if there is no such world; ALREADY_EXISTS if the id was used for another move; QUEUE_UNAVAILABLE
 */
export type MoveInWorld = (mover: Scope, name: string, move: Move, moveId: string) => Promise<WorldOutcome>;

export interface WorldParts {
  readonly move: MoveInWorld;
  /** The world for calls that name no world. If null, such calls fail. */
  readonly world: string | null;
}

export function worldTools({ move, world: usual }: WorldParts): readonly ToolDefinition[] {
  const worldTool = (tool: Move['tool'], title: string, description: string, input: z.ZodRawShape, output: z.ZodObject) =>
    defineTool({
      name: tool,
      title,
      description,
      input: z.strictObject({ ...input, world: World }),
      output,
      readOnly: tool === 'observe_location',
      idempotent: tool === 'observe_location',
      volatile: true,
      async run(given, context) {
        const { world = usual, ...args } = given as { readonly world?: string };
        if (world === null) return { success: false, error: NO_WORLD };
        return move(context, world, { tool, ...args } as Move, context.callId);
      },
    });
  return [
    worldTool(
      'observe_location',
      'Observe location',
      'Shows where you are in the world, what lies within a radius, and who is near.',
      { radius: z.number().int().min(0).max(SEEN).default(5).describe('How far to look, in cells.') },
      z.strictObject({
        position: Position,
        terrain: z.string(),
        climate: z.string(),
        resources: z.array(Position.extend({ resource: z.string(), amount: z.number().int() })).describe('Nearest first.'),
        nearby_agents: z.array(z.strictObject({ name: z.string(), type: z.string(), distance: z.number() })).describe('Nearest first.'),
        stamina: Stamina,
        inventory: Inventory,
      }),
    ),
    worldTool(
      'move_to',
      'Move to',
      'Goes to a cell in a straight line. It takes 0.01 of stamina per cell of distance. Nobody can stand on water or on a mountain.',
      { x: Coordinate, y: Coordinate },
      z.strictObject({ new_position: Position, stamina_used: Stamina, stamina: Stamina, terrain: z.string() }),
    ),
    worldTool(
      'gather_resource',
      'Gather resource',
      'Takes one unit of the resource at your cell. It takes 0.02 of stamina.',
      { resource: z.string().max(64).optional().describe('Gather only this resource; default: what is there.') },
      z.strictObject({ resource: z.string(), left: z.number().int(), stamina_used: Stamina, stamina: Stamina, inventory: Inventory }),
    ),
    worldTool(
      'interact_with_agent',
      'Interact with agent',
      'Meets somebody within 2 cells. To rest with an innkeeper restores all stamina; to rest with "self" restores 0.10. A guide tells where a resource is.',
      {
        name: z.string().min(1).max(200).describe('A name from nearby_agents, or "self".'),
        message: z.string().max(2_000).default('').describe('What to say. To a guide, say which resource you look for.'),
        action: z.enum(ACTIONS).default('talk'),
      },
      z.strictObject({ reply: z.string(), stamina: Stamina }),
    ),
  ];
}
