import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  type Agent as AgentMessage,
  type AgentSchema,
  type ProceduralMemorySettings as SettingsMessage,
  ProceduralMemorySettingsSchema,
} from '@etude/contracts/gen/etude/v1/agents_pb';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { AgentSettings } from '@etude/domain/ports/agent-settings';
import { timestampOf } from '../wire/duration.js';
import { invalidField, violationsOf, invalid } from '../wire/validation.js';

const SETTINGS = 'procedural_memory_settings';
/** As they are called in the proto, by their names in the contract. */
const NAMES = ProceduralMemorySettingsSchema.fields.map(
  ({ name, localName }) => [localName as keyof ProceduralMemorySettings, name] as const,
);

export function agentMessage({ agent, settings, isSet, updatedAt, etag }: AgentSettings): MessageInitShape<typeof AgentSchema> {
  return {
    name: `agents/${agent}`,
    proceduralMemorySettings: settings,
    isSet,
    updateTime: timestampOf(updatedAt === 0 ? null : updatedAt),
    etag,
  };
}

/**
 * What is to change: the settings that the mask names, or all of them.
 *
 * @throws EtudeError INVALID_ARGUMENT naming what is wrong
 */
export function settingsChange({ proceduralMemorySettings }: AgentMessage, paths: readonly string[]): Partial<ProceduralMemorySettings> {
  if (proceduralMemorySettings === undefined) throw invalidField(`agent.${SETTINGS}`, 'is required');
  const told: Partial<Record<keyof SettingsMessage, unknown>> = proceduralMemorySettings;
  const change = Object.fromEntries(fieldsOf(paths).map((field) => [field, told[field]]));
  const schema = ProceduralMemorySettings.partial();
  const parsed = schema.safeParse(change);
  if (!parsed.success) throw invalid(violationsOf(parsed.error, ProceduralMemorySettings, `agent.${SETTINGS}`));
  return Object.fromEntries(Object.entries(parsed.data).filter(([field]) => field in change));
}

function fieldsOf(paths: readonly string[]): ReadonlyArray<keyof ProceduralMemorySettings> {
  const all = NAMES.map(([field]) => field);
  if (paths.length === 0) return all;
  return paths.flatMap((path) => {
    if (path === SETTINGS) return all;
    const known = NAMES.find(([, name]) => path === `${SETTINGS}.${name}`);
    if (known === undefined)
      throw invalidField(
        'update_mask',
        `names ${JSON.stringify(path)}; it may name ${SETTINGS}, or in it ${NAMES.map(([, name]) => name).join(', ')}`,
      );
    return [known[0]];
  });
}
