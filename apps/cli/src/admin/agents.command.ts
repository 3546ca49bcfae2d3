import { fromJson, type JsonObject, ScalarType, toJson } from '@bufbuild/protobuf';
import { type Agent, Agents, type ProceduralMemorySettings, ProceduralMemorySettingsSchema } from '@etude/contracts/gen/etude/v1/agents_pb';
import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { addNoun, LIMIT, plain, REPEAT, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { table } from '../output.js';
import { when } from '../show.js';

const FIELDS = ProceduralMemorySettingsSchema.fields;
const SWITCHES: Readonly<Record<string, boolean>> = { true: true, false: false, on: true, off: false, yes: true, no: false };

/** Reads settings and their paths from "key=value" each; keys are the names on the wire. The gateway checks ranges. @throws CliError */
export function settingsOf(pairs: readonly string[]): { readonly settings: ProceduralMemorySettings; readonly paths: string[] } {
  const json: JsonObject = {};
  for (const pair of pairs) {
    const [, typed = '', text = ''] = /^([^=]+)=([^]*)$/.exec(pair) ?? [];
    const field = FIELDS.find(({ name }) => name === typed.replaceAll('-', '_'));
    if (field === undefined)
      throw new CliError(EXIT.usage, `${JSON.stringify(pair)} is no setting`, [
        `settings are key=value, with a key of: ${FIELDS.map(({ name }) => name).join(', ')}`,
      ]);
    const value = field.scalar === ScalarType.BOOL ? (SWITCHES[text] ?? text) : text;
    try {
      fromJson(ProceduralMemorySettingsSchema, { [field.name]: value });
    } catch (error) {
      const kind = field.scalar === ScalarType.BOOL ? 'true or false' : 'a number';
      throw new CliError(EXIT.usage, `${field.name} must be ${kind}; it is ${JSON.stringify(text)}`, [], { cause: error });
    }
    json[field.name] = value;
  }
  const paths = Object.keys(json).map((name) => `procedural_memory_settings.${name}`);
  return { settings: fromJson(ProceduralMemorySettingsSchema, json), paths };
}

function agentText({ name, isSet, updateTime, proceduralMemorySettings: settings }: Agent): string {
  const shown = settings && toJson(ProceduralMemorySettingsSchema, settings, { alwaysEmitImplicit: true, useProtoFieldName: true });
  const rows = Object.entries(shown ?? {}).map(([key, value]) => [key, String(value)]);
  return `${name}: ${isSet ? `set ${when(updateTime)}` : "nothing is set; these are the installation's"}\n${table(rows)}`;
}

/** `agents`: how each agent learns and uses skills. */
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
