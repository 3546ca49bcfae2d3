import { fromJson, toJson } from '@bufbuild/protobuf';
import { type Agent, Agents, type ProceduralMemorySettings, ProceduralMemorySettingsSchema } from '@etude/contracts/gen/etude/v1/agents_pb';
import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { addNoun, LIMIT, plain, REPEAT, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { table } from '../output.js';
import { when } from '../show.js';

/** Parses key=value pairs into settings and field paths. Keys are names on the wire. The gateway checks ranges. @throws CliError */
export function settingsOf(pairs: readonly string[]): { readonly settings: ProceduralMemorySettings; readonly paths: string[] } {
  const json = Object.fromEntries(pairs.map((pair) => [pair.split('=', 1)[0] ?? '', valueOf(pair.slice(pair.indexOf('=') + 1))]));
  try {
    const paths = Object.keys(json).map((name) => `procedural_memory_settings.${name}`);
    return { settings: fromJson(ProceduralMemorySettingsSchema, json), paths };
  } catch (error) {
    throw new CliError(EXIT.usage, (error as Error).message, [
      `settings are key=value, with a key of: ${ProceduralMemorySettingsSchema.fields.map(({ name }) => name).join(', ')}`,
    ]);
  }
}

const valueOf = (text: string) => (text === 'true' || text === 'false' ? text === 'true' : text);

function agentText({ name, isSet, updateTime, proceduralMemorySettings: settings }: Agent): string {
  const shown = settings && toJson(ProceduralMemorySettingsSchema, settings, { alwaysEmitImplicit: true, useProtoFieldName: true });
  const rows = Object.entries(shown ?? {}).map(([key, value]) => [key, String(value)]);
  return `${name}: ${isSet ? `set ${when(updateTime)}` : "nothing is set; these are the installation's"}\n${table(rows)}`;
}

export function addAgents(program: Command, start: Start): void {
  addNoun(program, start, 'agents', 'how each agent learns and uses skills', [
    plain(Agents.method.listAgents, {
      command: 'list',
      help: 'agents with settings of their own',
      flags: LIMIT(100),
      list: 'agents',
      columns: ['name', 'procedural_memory_settings.enabled', 'procedural_memory_settings.approval_mode', 'update_time'],
      none: 'no agent has settings of its own',
    }),
    plain(Agents.method.getAgent, {
      command: 'get <agent>',
      help: "an agent's settings, or those of the installation where it has none",
      text: agentText,
    }),
    plain(Agents.method.updateAgent, {
      command: 'set <agent> <settings...>',
      help: 'key=value each, such as approval_mode=review; for reviewers',
      flags: REPEAT,
      ask: ({ requestId = '' }, { args: [name = '', ...pairs] }) => {
        const { settings, paths } = settingsOf(pairs);
        return { agent: { name: resource('agent', name), proceduralMemorySettings: settings }, updateMask: { paths }, requestId };
      },
      text: agentText,
    }),
  ]);
}
