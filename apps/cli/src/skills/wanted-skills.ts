import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import { type WantedSkill, WantedSkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { readArgument } from '../files.js';
import { firstLine, plural, table } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { ridingOut } from '../sandbox/ride-out.js';
import { SCRIPTED, when } from '../tasks/task-lines.js';
import { bareName, wantedCommand } from './skill-lines.js';
import type { ReaderOptions } from './skill-reference.js';
import { objectOf } from './use-skill.js';

const PAGE_MAX = 200;
const EXAMPLE_HINT = ['it holds the arguments of a call by their names, such as {"text": "a,b"}'];

export interface RequestOptions extends ReaderOptions {
  readonly example?: string;
  readonly requestId?: string;
}

export async function requestSkill(cli: Cli, skill: string, description: string, options: RequestOptions): Promise<number> {
  const { example, agent = 'default', user = '', requestId = randomUUID() } = options;
  const called = example === undefined ? {} : { example: objectOf(await readArgument(example), '--example', EXAMPLE_HINT) };
  const request = { name: bareName(skill), description: await readArgument(description), agent, user, requestId, ...called };
  return withGateway(cli, async (gateway) => {
    const wanted = await ridingOut(cli.signal, () => gateway.skills.requestSkill(request, callSettings(cli)));
    cli.out.data(toJson(WantedSkillSchema, wanted), wantedText(wanted));
    cli.out.note(`${commandLine(cli, wantedCommand(wanted.name, user))} tells what becomes of it`);
    return EXIT.ok;
  });
}

/** One that was asked for, or all of them. */
export function showWanted(
  cli: Cli,
  wanted: string | undefined,
  { agent = '', user = '', limit }: ReaderOptions & { readonly limit: number },
): Promise<number> {
  return withGateway(cli, async (gateway) => {
    if (wanted !== undefined) {
      const found = await gateway.skills.getWantedSkill({ name: wantedName(wanted), user }, callSettings(cli));
      cli.out.data(toJson(WantedSkillSchema, found), wantedText(found));
      return EXIT.ok;
    }
    const all: WantedSkill[] = [];
    let pageToken = '';
    do {
      const request = { agent, user, pageToken, pageSize: Math.min(limit - all.length, PAGE_MAX) };
      const page = await gateway.skills.listWantedSkills(request, callSettings(cli));
      all.push(...page.wantedSkills);
      pageToken = page.nextPageToken;
    } while (pageToken !== '' && all.length < limit);
    cli.out.data({ wantedSkills: all.map((one) => toJson(WantedSkillSchema, one)) }, all.length > 0 ? wantedTable(all) : '');
    if (all.length === 0) cli.out.note('no skills were asked for');
    return EXIT.ok;
  });
}

/** What is being written for it is dropped; what is written already is refused. */
export function withdrawWanted(
  cli: Cli,
  wanted: string,
  { user = '', reason = '' }: { readonly user?: string; readonly reason?: string },
): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const request = { name: wantedName(wanted), user, reason };
    const withdrawn = await ridingOut(cli.signal, () => gateway.skills.withdrawWantedSkill(request, callSettings(cli)));
    cli.out.data(toJson(WantedSkillSchema, withdrawn), wantedText(withdrawn));
    return EXIT.ok;
  });
}

const wantedName = (wanted: string) => (wanted.startsWith('wantedSkills/') ? wanted : `wantedSkills/${wanted}`);

/** With a column for why, where one of them says so. */
export function wantedTable(all: readonly WantedSkill[]): string {
  const hasReasons = all.some(({ reason }) => reason !== '');
  const rows = all.map(({ name, skill, agent, user, state, reason, asked, description, scripted }) => [
    name,
    bareName(skill),
    [agent || '-', ...(user ? [user] : [])].join('/'),
    state,
    String(asked),
    [firstLine(description, 60), ...(scripted ? [SCRIPTED] : [])].join(' '),
    ...(hasReasons ? [firstLine(reason, 200) || '-'] : []),
  ]);
  return table([['WANTED', 'SKILL', 'AGENT', 'STATE', 'ASKED', 'DESCRIPTION', ...(hasReasons ? ['REASON'] : [])], ...rows]);
}

function wantedText(wanted: WantedSkill): string {
  const rows: Array<[string, string]> = [
    ['wanted', wanted.name],
    ['skill', bareName(wanted.skill)],
    ['state', [wanted.state, wanted.reason].filter(Boolean).join(': ')],
    ['asked', plural(wanted.asked, 'time')],
    ['priority', String(wanted.priority)],
    ['agent', [wanted.agent || '-', ...(wanted.user ? [`user ${wanted.user}`] : [])].join(', ')],
    ['came of it', [bareName(wanted.registeredSkill), ...(wanted.scripted ? [SCRIPTED] : [])].join(' ').trim()],
    ['created', when(wanted.createTime)],
    ['description', firstLine(wanted.description, 200)],
  ];
  return table(rows.filter(([, value]) => value !== ''));
}
