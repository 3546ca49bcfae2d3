import { toJson } from '@bufbuild/protobuf';
import { type Agent, Agents, type ProceduralMemorySettings, ProceduralMemorySettingsSchema } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Consolidation, type ConsolidationRun, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { TenantId } from '@etude/contracts/ids';
import { isSystemActor } from '@etude/contracts/skill-proof';
import type { Command } from 'commander';
import { callSettings, poll } from '../calls.js';
import type { Cli, Gateway, Start } from '../cli.js';
import { addNoun, hand, LIMIT, plain, resource } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { messageOf } from '../files.js';
import { integer } from '../options.js';
import { table } from '../output.js';
import { when } from '../show.js';
import { addKey, keysPath, readKeys, type Role } from '../home/home.js';

const isOver = ({ state }: ConsolidationRun) => state === ConsolidationState.DONE || state === ConsolidationState.FAILED;

export const waitForRun = (cli: Cli, gateway: Gateway, run: ConsolidationRun): Promise<ConsolidationRun> =>
  poll(cli, run, {
    isOver,
    ask: () => gateway.consolidation.getConsolidationRun({ name: run.name }, callSettings(cli)),
    status: ({ name }) => `${name} …`,
  });

const CONSOLIDATE = plain(Consolidation.method.runConsolidation, {
  command: 'consolidate',
  help: 'turn recent episodes into facts and verified skills now',
  flags: {
    '--dry-run': 'plan only',
    '--agent <name>': 'only this agent (default: all)',
    '--days <n>': { help: 'how far back', usual: 7, parse: integer(1, 3_650) },
    '--detach': 'do not wait for the end',
  },
  after: (started, { cli, gateway, options }) => {
    if (options['detach'] === true) return started;
    cli.out.note(`${started.name} …`);
    return waitForRun(cli, gateway, started);
  },
  exit: ({ state }) => (state === ConsolidationState.FAILED ? EXIT.failed : EXIT.ok),
});

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
    flags: { '--all': 'all of them' },
    ask: ({ all = false, ids = [], queue = '' }) => {
      if (all === ids.length > 0)
        throw new CliError(EXIT.usage, 'name the jobs to redrive, or pass --all', [`./etude queues dead ${queue} lists the jobs`]);
    },
    exit: ({ refused }) => (refused.length > 0 ? EXIT.failed : EXIT.ok),
  }),
];

const ROLES: readonly Role[] = ['user', 'reviewer', 'operator'];

interface KeyOptions {
  readonly tenant: string;
  readonly role: readonly Role[];
  readonly name: string;
}

/** Adds a key to the local stack's key file. A running gateway reloads the file. */
export async function createKey(cli: Cli, { tenant, role, name }: KeyOptions): Promise<number> {
  const parsed = TenantId.safeParse(tenant);
  if (!parsed.success) throw new CliError(EXIT.usage, `--tenant ${tenant}: ${parsed.error.issues[0]?.message ?? 'is wrong'}`);
  if (isSystemActor(name)) throw new CliError(EXIT.usage, `--name ${name}: this name is reserved for a part of Etude; choose another name`);
  const key = addKey(cli.home, { tenant, roles: [...role], name });
  cli.out.data({ key, tenant, roles: role, name }, key);
  cli.out.note(`Only the key's digest is stored, in ${keysPath(cli.home)}. The key is not shown again.`);
  return EXIT.ok;
}

async function listKeys(cli: Cli): Promise<number> {
  const keys = readKeys(cli.home);
  const rows = keys.map(({ sha256, tenant, roles, name }) => [sha256.slice(0, 12), tenant, roles.join(','), name || '-']);
  cli.out.data({ keys }, table([['DIGEST', 'TENANT', 'ROLES', 'NAME'], ...rows]));
  return EXIT.ok;
}

const KEYS = [
  hand<KeyOptions>({
    command: 'create',
    help: 'create a key and print it; only its digest is stored',
    flags: {
      '--tenant <tenant>': { help: 'the tenant whose data the key may access', required: true },
      '--role <role...>': { help: 'a role of the key; repeatable', choices: ROLES, usual: ['user'] },
      '--name <name>': { help: 'a name for the key', usual: '' },
    },
    run: createKey,
  }),
  hand({ command: 'list', help: 'list digests, tenants and roles of the keys', run: listKeys }),
];

/** Parses key=value pairs into settings and field paths. Keys are names on the wire. The gateway checks ranges. @throws CliError */
export function settingsOf(pairs: readonly string[]): { readonly settings: ProceduralMemorySettings; readonly paths: string[] } {
  const json = Object.fromEntries(pairs.map((pair) => [pair.split('=', 1)[0] ?? '', valueOf(pair.slice(pair.indexOf('=') + 1))]));
  const keys = ProceduralMemorySettingsSchema.fields.map(({ name }) => name).join(', ');
  const settings = messageOf(ProceduralMemorySettingsSchema, json, 'settings are wrong', [`write key=value; the keys are: ${keys}`]);
  return { settings, paths: Object.keys(json).map((name) => `procedural_memory_settings.${name}`) };
}

const valueOf = (text: string) => (text === 'true' || text === 'false' ? text === 'true' : text);

function agentText({ name, isSet, updateTime, proceduralMemorySettings: settings }: Agent): string {
  const shown = settings && toJson(ProceduralMemorySettingsSchema, settings, { alwaysEmitImplicit: true, useProtoFieldName: true });
  const rows = Object.entries(shown ?? {}).map(([key, value]) => [key, String(value)]);
  return `${name}: ${isSet ? `set ${when(updateTime)}` : "has no settings; these are the installation's"}\n${table(rows)}`;
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
    help: "show an agent's settings; an agent without settings has those of the installation",
    text: agentText,
  }),
  plain(Agents.method.updateAgent, {
    command: 'set <agent> <settings...>',
    help: 'change settings, each as key=value, such as approval_mode=review; for reviewers',
    ask: ({ requestId = '' }, { args: [name = '', ...pairs] }) => {
      const { settings, paths } = settingsOf(pairs);
      return { agent: { name: resource('agent', name), proceduralMemorySettings: settings }, updateMask: { paths }, requestId };
    },
    text: agentText,
  }),
];

export function addAdmin(program: Command, start: Start): void {
  addNoun(program, start, 'agents', 'settings for how each agent learns and uses skills', AGENTS);
  CONSOLIDATE(program, start);
  addNoun(program, start, 'queues', 'for operators: waiting and failed jobs', QUEUES);
  addNoun(program, start, 'keys', 'API keys of the local stack', KEYS);
}
