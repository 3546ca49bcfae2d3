import {
  type Agent as AgentMessage,
  type Agents,
  AgentSchema,
  type ProceduralMemorySettings as SettingsMessage,
  ProceduralMemorySettingsSchema,
} from '@etude/contracts/gen/etude/v1/agents_pb';
import { OutsideServers } from '@etude/contracts/outside-tools';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { TaskStrategy } from '@etude/contracts/task';
import type { AgentSettings } from '@etude/domain/ports/agent-settings';
import type { AgentChange } from '@etude/queue/agents/agent-settings-store';
import { z } from 'zod';
import type { Handlers } from '../calls/calls.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { once } from '../calls/once.js';
import { agentOfName, askedPage } from '../wire/names.js';
import { fromWire, toWire } from '@etude/contracts/wire/messages';
import { invalidField, parseField } from '@etude/contracts/wire/validation';

const PAGE = { max: 1_000, standard: 50 };

type AgentDeps = Pick<SkillDeps, 'settings' | 'memory'>;

export const agentCalls = {
  async listAgents(request, call, deps) {
    const { tenant } = call;
    const { limit, after, cut } = askedPage(request, PAGE, ['ListAgents', tenant]);
    const { items, nextPageToken } = cut(await deps.settings.list(tenant, { limit, after: after ?? '' }), (last) => last.agent);
    return { agents: items.map(agentMessage), nextPageToken };
  },

  async getAgent({ name }, call, deps) {
    const agent = agentOfName(name);
    return agentMessage(await deps.settings.get(call.tenant, agent));
  },

  async updateAgent({ agent: told, updateMask, requestId }, call, deps) {
    const { tenant } = call;
    if (told === undefined) throw invalidField('agent', 'is required');
    const agent = agentOfName(told.name, 'agent.name');
    const change = settingsChange(told, updateMask?.paths ?? []);
    const etag = told.etag === '' ? undefined : told.etag;
    const body = { agent, change, etag };
    const updated = await once(
      await deps.memory.open(),
      { tenant, requestId, method: 'UpdateAgent', body },
      { scope: { agent, user: null } },
      {
        act: () => deps.settings.update(tenant, agent, change, { etag }),
        again: () => deps.settings.get(tenant, agent),
      },
    );
    return agentMessage(updated);
  },
} satisfies Handlers<typeof Agents, AgentDeps>;

const SETTINGS = 'procedural_memory_settings';
/** The names of settings in the proto, by their names in the contract. */
const NAMES = ProceduralMemorySettingsSchema.fields.map(
  ({ name, localName }) => [localName as keyof ProceduralMemorySettings, name] as const,
);

function agentMessage({ agent, settings, updatedAt, ...more }: AgentSettings) {
  const name = `agents/${agent}`;
  return toWire(AgentSchema, { ...more, name, proceduralMemorySettings: settings, updatedAt: updatedAt || null });
}

const OwnFields = z.object({ strategy: TaskStrategy.default('attempts'), mcpServers: OutsideServers.default([]) });
/** Fields of an agent other than its procedural memory settings, by their names in the proto. */
const OWN = { strategy: 'strategy', mcp_servers: 'mcpServers' } as const;
const isOwn = (path: string): path is keyof typeof OWN => Object.hasOwn(OWN, path);

/**
 * The settings that the mask names. Without a mask: all procedural memory settings, and the other settings that aren't empty.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the wrong field
 */
function settingsChange(told: AgentMessage, paths: readonly string[]): AgentChange {
  const own = fromWire(OwnFields, AgentSchema, told, { root: 'agent' });
  const given = Object.keys(OWN)
    .filter(isOwn)
    .filter((path) => told[OWN[path]].length > 0);
  const usual = told.proceduralMemorySettings || given.length === 0 ? [SETTINGS, ...given] : given;
  const asked: readonly string[] = paths.length > 0 ? paths : usual;
  const others = asked.filter((path) => !isOwn(path));
  return {
    ...(others.length > 0 ? memoryChange(told, others) : {}),
    ...Object.fromEntries(asked.filter(isOwn).map((path) => [OWN[path], own[OWN[path]]])),
  };
}

function memoryChange({ proceduralMemorySettings }: AgentMessage, paths: readonly string[]): Partial<ProceduralMemorySettings> {
  if (proceduralMemorySettings === undefined) throw invalidField(`agent.${SETTINGS}`, 'is required');
  const told: Partial<Record<keyof SettingsMessage, unknown>> = proceduralMemorySettings;
  const change = Object.fromEntries(fieldsOf(paths).flatMap((field) => (told[field] === undefined ? [] : [[field, told[field]]])));
  const parsed = parseField(ProceduralMemorySettings.partial(), change, `agent.${SETTINGS}`);
  return Object.fromEntries(Object.entries(parsed).filter(([field]) => field in change));
}

function fieldsOf(paths: readonly string[]): ReadonlyArray<keyof ProceduralMemorySettings> {
  return paths.flatMap((path) => {
    const fields = NAMES.filter(([, name]) => path === SETTINGS || path === `${SETTINGS}.${name}`);
    if (fields.length > 0) return fields.map(([field]) => field);
    const known = NAMES.map(([, name]) => name).join(', ');
    throw invalidField(
      'update_mask',
      `names ${JSON.stringify(path)}; it may name ${Object.keys(OWN).join(', ')}, ${SETTINGS}, or one of its fields: ${known}`,
    );
  });
}
