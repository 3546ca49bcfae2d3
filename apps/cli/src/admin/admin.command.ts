import { toJson } from '@bufbuild/protobuf';
import { type Agent, Agents, AgentSchema, McpServerSchema, ProceduralMemorySettingsSchema } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Consolidation, type ConsolidationRun, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import type { Command } from 'commander';
import { callSettings, inPages, poll } from '../calls.js';
import type { Cli, Gateway, Start } from '../cli.js';
import { addNoun, LIMIT, plain, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { messageOf, readJson } from '../files.js';
import { integer } from '../options.js';
import { table } from '../output.js';
import { list, when } from '../show.js';
import { KEYS } from './keys.js';

const isOver = ({ state }: ConsolidationRun) => state === ConsolidationState.DONE || state === ConsolidationState.FAILED;

export async function waitForRun(cli: Cli, gateway: Gateway, run: ConsolidationRun): Promise<ConsolidationRun> {
  const ask = () => gateway.consolidation.getConsolidationRun({ name: run.name }, callSettings(cli));
  return wholeRun(cli, gateway, await poll(cli, run, { isOver, ask, status: ({ name }) => `${name} …` }));
}

async function wholeRun(cli: Cli, gateway: Gateway, { name }: ConsolidationRun): Promise<ConsolidationRun> {
  const pages: ConsolidationRun[] = [];
  const { items } = await inPages(Infinity, async (page) => {
    const run = await gateway.consolidation.getConsolidationRun({ name, ...page }, callSettings(cli));
    pages.push(run);
    return { items: run.agents, nextPageToken: run.nextPageToken };
  });
  return { ...pages.at(-1)!, plan: pages.flatMap(({ plan }) => plan), agents: [...items], nextPageToken: '' };
}

const CONSOLIDATE = plain(Consolidation.method.runConsolidation, {
  command: 'consolidate',
  help: 'turn recent episodes into facts and verified skills now',
  flags: {
    '--dry-run': 'plan only',
    '--force': 'apply a plan even if it makes recall worse',
    '--agent <name>': 'only this agent',
    '--days <n>': { help: 'days to look back', usual: 7, parse: integer(1, 3_650) },
    '--detach': 'do not wait for the end',
  },
  after: (started, { cli, gateway, options }) => {
    if (options['detach'] === true) return started;
    cli.out.note(`${started.name} …`);
    return waitForRun(cli, gateway, started);
  },
  exit: ({ state }) => (state === ConsolidationState.FAILED ? EXIT.failed : EXIT.ok),
});

const RUNS = [
  plain(Consolidation.method.listConsolidationRuns, {
    command: 'list',
    help: 'list the runs, also nightly ones, newest first',
    flags: LIMIT(50),
    columns: ['name', 'state', 'create_time', 'episodes_read', 'facts_added', 'skills_proposed', 'dry_run', 'error'],
    none: () => 'no consolidation runs yet',
  }),
  plain(Consolidation.method.getConsolidationRun, {
    command: 'get <run>',
    help: 'show a run, with one line per agent',
    after: (run, { cli, gateway }) => wholeRun(cli, gateway, run),
  }),
  plain(Consolidation.method.undoConsolidation, {
    command: 'undo <run>',
    help: 'for reviewers: undo the changes of a run, except records that were changed again since then',
    flags: { '--agent <name>': 'only this agent' },
    text: ({ agents }) =>
      agents
        .map(({ agent, undone, kept }) => list(`${agent}, ${undone.length} undone`, [...undone, ...kept.map((one) => `kept ${one}`)]))
        .join('\n'),
  }),
];

const QUEUES = [
  plain(Queues.method.listQueues, {
    command: 'list',
    help: 'list the queues with their jobs and workers',
    columns: ['name', 'waiting', 'active', 'delayed', 'dead', 'workers', 'oldest_waiting_ms'],
  }),
  plain(Queues.method.listDeadLetters, {
    command: 'dead <queue>',
    help: 'list the jobs that failed after all retries, newest first',
    flags: LIMIT(50),
    columns: ['id', 'code', 'path', 'attempts', 'fail_time', 'reason'],
    none: ({ args }) => `no dead letters in ${args[0] ?? ''}`,
  }),
  plain(Queues.method.redriveDeadLetters, {
    command: 'redrive <queue> [ids...]',
    help: 'queue dead letters again',
    flags: { '--all': 'queue all dead letters of this queue again' },
    ask: ({ all = false, ids = [], queue = '' }) => {
      if (all === ids.length > 0)
        throw new CliError(EXIT.usage, 'name the jobs to redrive, or pass --all', [`./etude queues dead ${queue} lists the jobs`]);
    },
    exit: ({ refused }) => (refused.length > 0 ? EXIT.failed : EXIT.ok),
  }),
];

const TENANTS = plain(Queues.method.listTenants, {
  command: 'tenants',
  help: 'for operators: show the usage of each tenant, now and today (UTC), and its limits',
  flags: LIMIT(100),
  columns: [
    'name',
    'limits.weight',
    'waiting',
    'running',
    'limits.tasks',
    'limits.submits_per_minute',
    'sandboxes',
    'limits.sandboxes',
    'tokens_today',
    'limits.tokens_per_day',
    'usd_today',
    'limits.usd_per_day',
    'refused_today',
  ],
  none: 'no tenant has any usage now or today',
});

const AUDIT = plain(Queues.method.listAudit, {
  command: 'audit',
  help: 'for reviewers: list who changed what; --json prints all fields',
  flags: {
    ...LIMIT(100),
    '--days <n>': 'only the last days',
    '--tenant <tenant>': 'for operators: another tenant',
  },
  columns: ['time', 'actor', 'roles', 'call', 'target', 'outcome', 'count'],
  none: 'the audit log has no entries',
  notes: ({ entries }) =>
    entries.some(({ outcome }) => outcome === 'UNKNOWN')
      ? ['outcome unknown: the gateway ended during the call, or the call still runs']
      : [],
});

const MEMORY_SETTINGS = 'procedural_memory_settings';
/** Settings of an agent outside of procedural memory. */
const OWN = ['strategy', 'mcp_servers'];

/** Parses key=value pairs into an agent and field paths. Keys are proto field names. The gateway checks ranges. @throws CliError */
export function settingsOf(pairs: readonly string[]): { readonly agent: Agent; readonly paths: string[] } {
  const json: Record<string, unknown> = {};
  const memory: Record<string, unknown> = {};
  for (const pair of pairs) {
    const [key = ''] = pair.split('=', 1);
    (OWN.includes(key) ? json : memory)[key] = valueOf(pair.slice(pair.indexOf('=') + 1));
  }
  const paths = [...Object.keys(json), ...Object.keys(memory).map((name) => `${MEMORY_SETTINGS}.${name}`)];
  const keys = [...ProceduralMemorySettingsSchema.fields.map(({ name }) => name), ...OWN].join(', ');
  const hint = [`write key=value; the keys are: ${keys}`];
  return { agent: messageOf(AgentSchema, { ...json, [MEMORY_SETTINGS]: memory }, 'settings are wrong', hint), paths };
}

function valueOf(text: string): unknown {
  if (text.startsWith('@')) return readJson(text.slice(1));
  return text === 'true' || text === 'false' ? text === 'true' : text;
}

function agentText({ name, isSet, updateTime, proceduralMemorySettings: settings, strategy, mcpServers }: Agent): string {
  const shown = settings && toJson(ProceduralMemorySettingsSchema, settings, { alwaysEmitImplicit: true, useProtoFieldName: true });
  const servers = mcpServers.map((server) => JSON.stringify(toJson(McpServerSchema, server, { useProtoFieldName: true })));
  const own = { strategy, mcp_servers: servers.join('\n') || 'none' };
  const rows = [...Object.entries(shown ?? {}), ...Object.entries(own)].map(([key, value]) => [key, String(value)]);
  return `${name}: ${isSet ? `set ${when(updateTime)}` : "has no settings of its own; these are the installation's defaults"}\n${table(rows)}`;
}

const AGENTS = [
  plain(Agents.method.listAgents, {
    command: 'list',
    help: 'list the agents that have their own settings',
    flags: LIMIT(100),
    columns: ['name', 'procedural_memory_settings.enabled', 'procedural_memory_settings.approval_mode', 'update_time'],
    none: 'no agent has settings of its own',
  }),
  plain(Agents.method.getAgent, {
    command: 'get <agent>',
    help: "show an agent's settings, or the installation's defaults if it has none",
    text: agentText,
  }),
  plain(Agents.method.updateAgent, {
    command: 'set <agent> <settings...>',
    help: 'change settings, each as key=value, such as approval_mode=review, strategy=codeact or mcp_servers=@FILE; for reviewers',
    ask: ({ requestId = '' }, { args: [name = '', ...pairs] }) => {
      const { agent, paths } = settingsOf(pairs);
      return { agent: { ...agent, name: resource('agent', name) }, updateMask: { paths }, requestId };
    },
    text: agentText,
  }),
];

export function addAdmin(program: Command, start: Start): void {
  addNoun(program, start, 'agents', 'settings for how each agent works, learns and uses skills and tools', AGENTS);
  CONSOLIDATE(program, start);
  const consolidate = program.commands.find((command) => command.name() === 'consolidate')!;
  for (const entry of RUNS) entry(consolidate, start);
  addNoun(program, start, 'queues', 'for operators: waiting and failed jobs', QUEUES);
  TENANTS(program, start);
  AUDIT(program, start);
  addNoun(program, start, 'keys', 'API keys of the local stack, or of a key file', KEYS);
}
