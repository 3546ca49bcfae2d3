import { randomUUID } from 'node:crypto';
import { type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { type Agent, AgentSchema, type ProceduralMemorySettingsSchema } from '@etude/contracts/gen/etude/v1/agents_pb';
import { APPROVAL_MODES } from '@etude/contracts/skill-proof';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { table } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { ridingOut } from '../sandbox/ride-out.js';
import { when } from '../tasks/task-lines.js';

type Settings = MessageInitShape<typeof ProceduralMemorySettingsSchema>;
const PAGE_MAX = 1_000;

interface Setting {
  readonly field: keyof Omit<Settings, '$typeName' | '$unknown'>;
  readonly parse: (text: string) => boolean | number | string | null;
  readonly must: string;
}

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, on: true, off: false, yes: true, no: false };
const boolean = (text: string) => BOOLEANS[text] ?? null;
const fraction = (text: string) => (text.trim() !== '' && Number(text) >= 0 && Number(text) <= 1 ? Number(text) : null);
const count = (text: string) => (/^[0-9]{1,7}$/.test(text) ? Number(text) : null);
const mode = (text: string) => ((APPROVAL_MODES as readonly string[]).includes(text) ? text : null);

/** By the names that the wire has. */
export const SETTINGS: Readonly<Record<string, Setting>> = {
  enabled: { field: 'enabled', parse: boolean, must: 'be true or false' },
  auto_register_skills: { field: 'autoRegisterSkills', parse: boolean, must: 'be true or false' },
  skill_registration_confidence_threshold: {
    field: 'skillRegistrationConfidenceThreshold',
    parse: fraction,
    must: 'be a number from 0 to 1',
  },
  max_skills: { field: 'maxSkills', parse: count, must: 'be a whole number; 0 is no limit' },
  skill_search_threshold: { field: 'skillSearchThreshold', parse: fraction, must: 'be a number from 0 to 1' },
  prefer_skills: { field: 'preferSkills', parse: boolean, must: 'be true or false' },
  approval_mode: { field: 'approvalMode', parse: mode, must: `be ${APPROVAL_MODES.join(', ')}` },
};

/** "agents/NAME" */
const agentResource = (agent: string) => (agent.startsWith('agents/') ? agent : `agents/${agent}`);

/** The settings that "key=value" each name, and their paths. @throws CliError */
export function settingsOf(pairs: readonly string[]): { readonly settings: Settings; readonly paths: string[] } {
  const settings: Record<string, unknown> = {};
  const paths: string[] = [];
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const key = (at < 0 ? pair : pair.slice(0, at)).replaceAll('-', '_');
    const setting = Object.hasOwn(SETTINGS, key) ? SETTINGS[key] : undefined;
    if (at < 1 || setting === undefined)
      throw new CliError(EXIT.usage, `${JSON.stringify(pair)} is no setting`, [
        `settings are key=value, with a key of: ${Object.keys(SETTINGS).join(', ')}`,
      ]);
    const value = setting.parse(pair.slice(at + 1));
    if (value === null) throw new CliError(EXIT.usage, `${key} must ${setting.must}; it is ${JSON.stringify(pair.slice(at + 1))}`);
    settings[setting.field] = value;
    paths.push(`procedural_memory_settings.${key}`);
  }
  return { settings, paths: [...new Set(paths)] };
}

const valueText = (key: string, value: boolean | number | string | undefined) =>
  key === 'max_skills' && value === 0 ? '0 (no limit)' : String(value ?? '-');

function show(cli: Cli, agent: Agent): void {
  const settings = agent.proceduralMemorySettings;
  const rows = Object.entries(SETTINGS).map(([key, { field }]) => [key, valueText(key, settings?.[field])]);
  const since = agent.isSet ? `set ${when(agent.updateTime)}` : "nothing is set; these are the installation's";
  cli.out.data(toJson(AgentSchema, agent, { alwaysEmitImplicit: true }), `${agent.name}: ${since}\n${table(rows)}`);
}

export function getAgent(cli: Cli, agent: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    show(cli, await gateway.agents.getAgent({ name: agentResource(agent) }, callSettings(cli)));
    return EXIT.ok;
  });
}

export function setAgent(
  cli: Cli,
  agent: string,
  pairs: readonly string[],
  { requestId = randomUUID() }: { readonly requestId?: string },
): Promise<number> {
  const { settings, paths } = settingsOf(pairs);
  const request = { agent: { name: agentResource(agent), proceduralMemorySettings: settings }, updateMask: { paths }, requestId };
  return withGateway(cli, async (gateway) => {
    show(cli, await ridingOut(cli.signal, () => gateway.agents.updateAgent(request, callSettings(cli))));
    return EXIT.ok;
  });
}

export function listAgents(cli: Cli, { limit }: { readonly limit: number }): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const agents: Agent[] = [];
    let pageToken = '';
    do {
      const page = await gateway.agents.listAgents({ pageToken, pageSize: Math.min(limit - agents.length, PAGE_MAX) }, callSettings(cli));
      agents.push(...page.agents);
      pageToken = page.nextPageToken;
    } while (pageToken !== '' && agents.length < limit);
    const rows = agents.map(({ name, proceduralMemorySettings: own, updateTime }) => [
      name.replace('agents/', ''),
      own?.enabled ? 'enabled' : 'off',
      own?.approvalMode ?? '-',
      when(updateTime),
    ]);
    const json = { agents: agents.map((agent) => toJson(AgentSchema, agent, { alwaysEmitImplicit: true })) };
    cli.out.data(json, rows.length > 0 ? table([['AGENT', 'SKILLS', 'APPROVAL', 'SET'], ...rows]) : '');
    if (rows.length === 0) cli.out.note('no agent has settings of its own');
    return EXIT.ok;
  });
}
