import { randomUUID } from 'node:crypto';
import { toJson } from '@bufbuild/protobuf';
import {
  GetSkillStatsResponseSchema,
  PruneSkillsResponseSchema,
  RevokeSourceResponseSchema,
  type Skill,
  UndoPruneResponseSchema,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { plural, table } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { ridingOut } from '../sandbox/ride-out.js';
import { bareName, doneLine, list, skillTable } from './skill-lines.js';

export interface PruneOptions {
  readonly agent?: string;
  readonly dryRun?: boolean;
  readonly undo?: string;
  readonly unusedDays?: number;
  readonly failingRate?: number;
  readonly failingUses?: number;
  readonly supersededDays?: number;
  readonly requestId?: string;
}

export function pruneSkills(cli: Cli, options: PruneOptions): Promise<number> {
  const { agent = '', dryRun = false, undo, unusedDays = 0, failingRate = 0, failingUses = 0, supersededDays = 0 } = options;
  const requestId = options.requestId ?? randomUUID();
  const hasPolicy = unusedDays > 0 || failingRate > 0 || supersededDays > 0;
  if (undo !== undefined && (hasPolicy || dryRun))
    throw new CliError(EXIT.usage, '--undo takes a pruning back, and goes with nothing else');
  if (undo !== undefined) return withGateway(cli, ({ skills }) => undoPrune(cli, skills, { pruneId: undo, requestId }));
  if (!hasPolicy)
    throw new CliError(EXIT.usage, 'say what is to be pruned', [
      '--unused-days N, --failing-rate X [--failing-uses N], --superseded-days N',
    ]);
  return withGateway(cli, async (gateway) => {
    const policy = { unusedDays, failingRateMax: failingRate, failingUsesMin: failingUses, supersededDays };
    const done = await ridingOut(cli.signal, () => gateway.skills.pruneSkills({ agent, dryRun, requestId, ...policy }, callSettings(cli)));
    const rows = done.pruned.map(({ name, version, agent: owner, reason }) => [`${bareName(name)}@${version}`, owner, reason]);
    cli.out.data(toJson(PruneSkillsResponseSchema, done, { alwaysEmitImplicit: true }), table(rows));
    for (const { name, version, agent: owner, reason, calledBy } of done.kept)
      cli.out.note(`${bareName(name)}@${version} of "${owner}" stays (${reason}): it is called by ${calledBy.join(', ')}`);
    if (dryRun) cli.out.note(`${plural(rows.length, 'skill')} would be archived; nothing was changed`);
    else if (rows.length === 0) cli.out.note('nothing to prune');
    else cli.out.note(`${plural(rows.length, 'skill')} archived; ${commandLine(cli, `skills prune --undo ${done.pruneId}`)} takes it back`);
    return EXIT.ok;
  });
}

export async function undoPrune(
  cli: Cli,
  skills: Pick<Gateway['skills'], 'undoPrune'>,
  request: { readonly pruneId: string; readonly requestId: string },
): Promise<number> {
  const done = await ridingOut(cli.signal, () => skills.undoPrune(request, callSettings(cli)));
  cli.out.data(toJson(UndoPruneResponseSchema, done, { alwaysEmitImplicit: true }), done.skills.map(doneLine).join('\n'));
  for (const { name, version, agent: owner, reason } of done.left)
    cli.out.note(`${bareName(name)}@${version} of "${owner}" stays archived: ${reason}`);
  if (done.skills.length === 0 && done.left.length === 0)
    cli.out.note('nothing to take back: it is undone, or somebody touched the skills since');
  return EXIT.ok;
}

export interface RevokeOptions {
  readonly dryRun?: boolean;
  readonly reason?: string;
  readonly requestId?: string;
}

export function revokeSource(
  cli: Cli,
  source: string,
  { dryRun = false, reason = '', requestId = randomUUID() }: RevokeOptions,
): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const request = { source, dryRun, reason, requestId };
    const done = await ridingOut(cli.signal, () => gateway.skills.revokeSource(request, callSettings(cli)));
    const parts = [done.skills.length > 0 ? skillTable(done.skills) : '', list('facts', done.facts)].filter((part) => part !== '');
    cli.out.data(toJson(RevokeSourceResponseSchema, done, { alwaysEmitImplicit: true }), parts.join('\n\n'));
    const what = `${plural(done.skills.length, 'skill')} and ${plural(done.facts.length, 'fact')}`;
    if (done.skills.length === 0 && done.facts.length === 0) cli.out.note(`nothing rests on ${source}: nothing was withdrawn`);
    else cli.out.note(dryRun ? `${what} would be withdrawn; nothing was changed` : `${what} withdrawn`);
    return EXIT.ok;
  });
}

export function skillStats(cli: Cli, { agent = '' }: { readonly agent?: string }): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const stats = await gateway.skills.getSkillStats({ agent }, callSettings(cli));
    const rows = stats.agents.map(({ agent: owner, byStatus, offeredCount, usedCount, succeededCount, fellBackCount }) => [
      owner,
      ...[offeredCount, usedCount, succeededCount, fellBackCount].map(String),
      Object.entries(byStatus)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([status, count]) => `${count} ${status}`)
        .join(', '),
    ]);
    const parts = [
      table([['AGENT', 'OFFERED', 'USED', 'SUCCEEDED', 'FELL BACK', 'SKILLS'], ...rows]),
      listed('most used', stats.mostUsed),
      listed('failing', stats.failing),
      listed('never used', stats.unused),
    ];
    const text = rows.length === 0 ? '' : parts.filter((part) => part !== '').join('\n\n');
    cli.out.data(toJson(GetSkillStatsResponseSchema, stats, { alwaysEmitImplicit: true }), text);
    if (rows.length === 0) cli.out.note('no skills');
    return EXIT.ok;
  });
}

const listed = (title: string, skills: readonly Skill[]) => (skills.length === 0 ? '' : `${title}:\n${skillTable(skills)}`);
