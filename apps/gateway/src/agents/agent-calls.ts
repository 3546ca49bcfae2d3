import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type Agent as AgentMessage,
  type Agents,
  AgentSchema,
  type ProceduralMemorySettings as SettingsMessage,
  ProceduralMemorySettingsSchema,
} from '@etude/contracts/gen/etude/v1/agents_pb';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { AgentSettings } from '@etude/domain/ports/agent-settings';
import { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import type { Handlers } from '../calls/calls.js';
import { MemoryAccess } from '../calls/memory-access.js';
import { once } from '../calls/once.js';
import { agentOfName, askedPage } from '../wire/names.js';
import { toWire } from '@etude/contracts/wire/messages';
import { invalidField, parseField } from '@etude/contracts/wire/validation';

const PAGE = { max: 1_000, standard: 50 };

export interface AgentDeps {
  readonly settings: AgentSettingsStore;
  readonly memory: MemoryAccess;
}

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
} satisfies Handlers<typeof Agents, AgentDeps>;

export const agentChanges = {
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
        resultOf: () => '',
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

export function agentMessage({ agent, settings, updatedAt, ...more }: AgentSettings): MessageInitShape<typeof AgentSchema> {
  const name = `agents/${agent}`;
  return toWire(AgentSchema, { ...more, name, proceduralMemorySettings: settings, updatedAt: updatedAt || null });
}

/**
 * The changed settings: those that the mask names, or all without a mask.
 *
 * @throws EtudeError INVALID_ARGUMENT naming the wrong field
 */
export function settingsChange({ proceduralMemorySettings }: AgentMessage, paths: readonly string[]): Partial<ProceduralMemorySettings> {
  if (proceduralMemorySettings === undefined) throw invalidField(`agent.${SETTINGS}`, 'is required');
  const told: Partial<Record<keyof SettingsMessage, unknown>> = proceduralMemorySettings;
  const change = Object.fromEntries(fieldsOf(paths).flatMap((field) => (told[field] === undefined ? [] : [[field, told[field]]])));
  const parsed = parseField(ProceduralMemorySettings.partial(), change, `agent.${SETTINGS}`);
  return Object.fromEntries(Object.entries(parsed).filter(([field]) => field in change));
}

function fieldsOf(paths: readonly string[]): ReadonlyArray<keyof ProceduralMemorySettings> {
  return (paths.length === 0 ? [SETTINGS] : paths).flatMap((path) => {
    const fields = NAMES.filter(([, name]) => path === SETTINGS || path === `${SETTINGS}.${name}`);
    if (fields.length > 0) return fields.map(([field]) => field);
    const known = NAMES.map(([, name]) => name).join(', ');
    throw invalidField('update_mask', `names ${JSON.stringify(path)}; it may name ${SETTINGS}, or in it ${known}`);
  });
}
