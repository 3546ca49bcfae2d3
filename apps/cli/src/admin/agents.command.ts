import { randomUUID } from 'node:crypto';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { type Agent, Agents, AgentSchema, type ProceduralMemorySettingsSchema } from '@etude/contracts/gen/etude/v1/agents_pb';
import { APPROVAL_MODES } from '@etude/contracts/skill-proof';
import type { Command } from 'commander';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, type Start, withGateway } from '../cli.js';
import { addNoun, hand, LIMIT, plain, REPEAT, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { table } from '../output.js';
import { when } from '../tasks/task-lines.js';

type Settings = MessageInitShape<typeof ProceduralMemorySettingsSchema>;
type Field = keyof Omit<Settings, '$typeName' | '$unknown'>;
type Parse = (text: string) => boolean | number | string | null;

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, on: true, off: false, yes: true, no: false };
const boolean: Parse = (text) => BOOLEANS[text] ?? null;
const fraction: Parse = (text) => (text.trim() !== '' && Number(text) >= 0 && Number(text) <= 1 ? Number(text) : null);
const count: Parse = (text) => (/^[0-9]{1,7}$/.test(text) ? Number(text) : null);
const mode: Parse = (text) => ((APPROVAL_MODES as readonly string[]).includes(text) ? text : null);

/** Settings by their names on the wire: field, parser, and what a value must be. */
const SETTINGS: Readonly<Record<string, readonly [Field, Parse, string]>> = {
  enabled: ['enabled', boolean, 'true or false'],
  auto_register_skills: ['autoRegisterSkills', boolean, 'true or false'],
  skill_registration_confidence_threshold: ['skillRegistrationConfidenceThreshold', fraction, 'a number from 0 to 1'],
  max_skills: ['maxSkills', count, 'a whole number; 0 is no limit'],
  skill_search_threshold: ['skillSearchThreshold', fraction, 'a number from 0 to 1'],
  prefer_skills: ['preferSkills', boolean, 'true or false'],
  approval_mode: ['approvalMode', mode, APPROVAL_MODES.join(', ')],
};

/** Reads settings and their paths from "key=value" each. @throws CliError */
export function settingsOf(pairs: readonly string[]): { readonly settings: Settings; readonly paths: string[] } {
  const settings: Record<string, unknown> = {};
  const paths = new Set<string>();
  for (const pair of pairs) {
    const [, name = '', text = ''] = /^([^=]+)=([^]*)$/.exec(pair) ?? [];
    const key = name.replaceAll('-', '_');
    const setting = Object.hasOwn(SETTINGS, key) ? SETTINGS[key] : undefined;
    if (setting === undefined)
      throw new CliError(EXIT.usage, `${JSON.stringify(pair)} is no setting`, [
        `settings are key=value, with a key of: ${Object.keys(SETTINGS).join(', ')}`,
      ]);
    const [field, parse, must] = setting;
    const value = parse(text);
    if (value === null) throw new CliError(EXIT.usage, `${key} must be ${must}; it is ${JSON.stringify(text)}`);
    settings[field] = value;
    paths.add(`procedural_memory_settings.${key}`);
  }
  return { settings, paths: [...paths] };
}

function agentText({ name, isSet, updateTime, proceduralMemorySettings: settings }: Agent): string {
  const rows = Object.entries(SETTINGS).map(([key, [field]]) => {
    const value = settings?.[field];
    return [key, field === 'maxSkills' && value === 0 ? '0 (no limit)' : String(value ?? '-')];
  });
  return `${name}: ${isSet ? `set ${when(updateTime)}` : "nothing is set; these are the installation's"}\n${table(rows)}`;
}

async function setAgent(cli: Cli, { requestId = randomUUID() }: { requestId?: string }, [name = '', ...pairs]: readonly string[]) {
  const { settings, paths } = settingsOf(pairs);
  const request = { agent: { name: resource('agent', name), proceduralMemorySettings: settings }, updateMask: { paths }, requestId };
  return withGateway(cli, async (gateway) => {
    const agent = await ridingOut(cli.signal, () => gateway.agents.updateAgent(request, callSettings(cli)));
    cli.out.data(toJson(AgentSchema, agent, { alwaysEmitImplicit: true }), agentText(agent));
    return EXIT.ok;
  });
}

const agentRow = ({ name, proceduralMemorySettings: own, updateTime }: Agent) => [
  name.replace('agents/', ''),
  own?.enabled ? 'enabled' : 'off',
  own?.approvalMode ?? '-',
  when(updateTime),
];

/** `agents`: how each agent learns and uses skills. */
export function addAgents(program: Command, start: Start): void {
  addNoun(program, start, 'agents', 'how each agent learns and uses skills', [
    plain(Agents.method.listAgents, {
      command: 'list',
      help: 'agents with settings of their own',
      flags: LIMIT(100),
      list: 'agents',
      whole: true,
      text: ({ agents }) => (agents.length === 0 ? '' : table([['AGENT', 'SKILLS', 'APPROVAL', 'SET'], ...agents.map(agentRow)])),
      none: 'no agent has settings of its own',
    }),
    plain(Agents.method.getAgent, {
      command: 'get <agent>',
      help: "an agent's settings, or those of the installation where it has none",
      whole: true,
      text: agentText,
    }),
    hand({
      command: 'set <agent> <settings...>',
      help: 'key=value each, such as approval_mode=review; for reviewers',
      flags: REPEAT,
      run: setAgent,
    }),
  ]);
}
