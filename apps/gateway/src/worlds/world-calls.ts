import { randomUUID } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import { WorldSchema, type Worlds as WorldService } from '@etude/contracts/gen/etude/v1/worlds_pb';
import { toWire } from '@etude/contracts/wire/messages';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import type { NamedWorld, RedisWorlds } from '@etude/queue/worlds/worlds-store';
import { worldTools } from '@etude/domain/tools/world-tools';
import { inhabitantsOf, keyOf, picture, STAMINA_MAX, WorldPlan } from '@etude/domain/world/world';
import type { Handlers } from '../calls/calls.js';
import { ownScope } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { outcomeMessage } from '../wire/outcomes.js';
import { askedPage, optionalRequestId, worldOfName } from '../wire/names.js';

const PAGE = { max: 1_000, standard: 50 };

interface WorldDeps extends Pick<SkillDeps, 'settings'> {
  readonly worlds: RedisWorlds;
}

/** `etude.v1.Worlds`. All agents and users of a tenant share its worlds. */
export const worldCalls = {
  async createWorld({ name, seed, width, height }, { tenant }, { worlds }) {
    const world = worldOfName(name);
    const told = { seed: seed || world, width: width || undefined, height: height || undefined };
    return worldMessage(await worlds.create(tenant, world, parseField(WorldPlan, told, '')));
  },

  async getWorld({ name }, { tenant }, { worlds }) {
    return worldMessage((await worlds.get(tenant, worldOfName(name))) ?? missing(name));
  },

  async listWorlds(request, { tenant }, { worlds }) {
    const { limit, after, cut } = askedPage(request, PAGE, ['ListWorlds', tenant]);
    const { items, nextPageToken } = cut(await worlds.list(tenant, { limit, after: after ?? '' }), (last) => last.name);
    return { worlds: items.map((one) => ({ ...worldMessage(one), rows: [] })), nextPageToken };
  },

  async deleteWorld({ name }, { tenant }, { worlds }) {
    return (await worlds.remove(tenant, worldOfName(name))) ? {} : missing(name);
  },

  async moveInWorld(request, call, { worlds, settings }) {
    const [mover, world] = [ownScope(call, request), worldOfName(request.name)];
    const tools = worldTools({ move: worlds.move, world });
    const tool = tools.find(({ name }) => name === request.tool);
    if (tool === undefined) throw invalidField('tool', `must be one of ${tools.map(({ name }) => name).join(', ')}`);
    const callId = optionalRequestId(request.requestId) ?? randomUUID();
    const agent = await settings.get(mover.tenant, mover.agent);
    const context = { ...mover, session: '', callId, by: call.name, settings: agent.settings };
    return outcomeMessage(await tool.call({ ...request.arguments, world }, context, call.signal));
  },
} satisfies Handlers<typeof WorldService, WorldDeps>;

function missing(name: string): never {
  throw new EtudeError('NOT_FOUND', `There is no ${name}.`);
}

function worldMessage({ name, world, ...times }: NamedWorld) {
  const markers = new Map(inhabitantsOf(world).map((one) => [keyOf(one), '&']));
  for (const one of world.characters) markers.set(keyOf(one), '@');
  const agents = world.characters.map((one) => ({ ...one, stamina: one.stamina / STAMINA_MAX }));
  return toWire(WorldSchema, { ...world, ...times, name: `worlds/${name}`, agents, rows: picture(world, markers) });
}
