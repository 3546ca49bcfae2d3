import { randomUUID } from 'node:crypto';
import type { DescMethodUnary } from '@bufbuild/protobuf';
import { toJson } from '@bufbuild/protobuf';
import {
  PruneSkillsResponseSchema,
  type Skill,
  Skills,
  SkillSchema,
  SkillStatus,
  UndoPruneResponseSchema,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, commandLine, type Gateway, withGateway } from '../cli.js';
import { type Entry, type Flags, type Given, hand, type Plain, plain, REPEAT, wholeSkill } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { fraction, integer } from '../options.js';
import { plural, table } from '../output.js';
import { bareName, doneLine, list, reviewText, skillTable, versionWords } from './skill-lines.js';

const READER: Flags = {
  '--agent <name>': 'as this agent sees it (default: all agents of the tenant)',
  '--user <name>': "with what is this user's",
};
const REASON: Flags = { '--reason <text>': 'kept in the history' };

/** Names the callers of a skill that became active: each gets a version that is pinned to this one. */
async function callerNotes({ name, agent, user, version, status }: Skill, { cli, gateway }: Given): Promise<string[]> {
  if (status !== SkillStatus.ACTIVE) return [];
  const { dependents } = await gateway.skills.getSkillReview({ name, agent, user, version }, callSettings(cli));
  const callers = [...new Set(dependents.map((caller) => bareName(caller.name)))];
  return callers.length > 0 ? [`what calls it follows, each with a version that is verified first: ${callers.join(', ')}`] : [];
}

/** A decision of a reviewer: it answers the skill as it is afterwards. */
const decision = <I extends DescMethodUnary['input']>(
  method: DescMethodUnary<I, typeof SkillSchema>,
  { flags, ...spec }: Omit<Plain<I, typeof SkillSchema>, 'text'>,
): Entry => plain(method, { flags: { ...READER, ...REPEAT, ...flags }, text: doneLine, ...spec });

const DECISIONS: readonly Entry[] = [
  decision(Skills.method.approveSkill, {
    command: 'approve <skill>',
    help: 'let a verified skill that waits for review be used',
    flags: {
      '--digest <sha256>': 'of what was reviewed, always needed; skills review prints the whole line',
      '--merge <skill>': 'a skill that does the same: it is deprecated, and its uses go to this one',
    },
    ask: (request, { cli }) => {
      const { name = '', version = 0, agent = '', user = '', digest, merge } = request;
      if (!digest) {
        const review = commandLine(cli, `skills review ${versionWords({ name, version, agent, user })}`);
        throw new CliError(EXIT.usage, 'the digest of what was reviewed is missing: --digest SHA256', [`${review} prints the whole line`]);
      }
      return { ...request, merge: merge ? wholeSkill(merge) : '' };
    },
    notes: callerNotes,
  }),
  decision(Skills.method.rejectSkill, {
    command: 'reject <skill>',
    help: 'keep a skill from being used',
    flags: { '--reason <text>': { help: 'why; kept in the history', required: true } },
  }),
  decision(Skills.method.rollbackSkill, {
    command: 'rollback <skill>',
    help: 'an earlier version is used again',
    flags: { ...REASON, '--to <n>': { help: 'version (default: the newest that was active before)', field: 'toVersion' } },
    notes: callerNotes,
  }),
  decision(Skills.method.deprecateSkill, {
    command: 'deprecate <skill>',
    help: 'no longer offered',
    flags: { ...REASON, '--replaced-by <skill>': 'the skill that is used in its place' },
    ask: (request) => ({ ...request, replacedBy: request.replacedBy ? wholeSkill(request.replacedBy) : '' }),
  }),
  decision(Skills.method.archiveSkill, {
    command: 'archive <skill>',
    help: 'out of sight, every version unless one is named',
    flags: REASON,
  }),
  decision(Skills.method.restoreSkill, { command: 'restore <skill>', help: 'bring an archived skill back', flags: REASON }),
  decision(Skills.method.promoteSkill, {
    command: 'promote <skill>',
    help: 'a copy for more readers; it waits for review there',
    flags: { '--scope <scope>': { help: 'who reads the copy', choices: ['user', 'tenant', 'global'], required: true } },
  }),
];

interface PruneOptions {
  readonly agent?: string;
  readonly dryRun?: boolean;
  readonly undo?: string;
  readonly unusedDays?: number;
  readonly failingRate?: number;
  readonly failingUses?: number;
  readonly supersededDays?: number;
  readonly requestId?: string;
}

const staysLine = ({ name, version, agent }: { readonly name: string; readonly version: number; readonly agent: string }, why: string) =>
  `${bareName(name)}@${version} of "${agent}" stays ${why}`;

export async function pruneSkills(cli: Cli, options: PruneOptions): Promise<number> {
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
  const policy = { unusedDays, failingRateMax: failingRate, failingUsesMin: failingUses, supersededDays };
  return withGateway(cli, async ({ skills }) => {
    const done = await ridingOut(cli.signal, () => skills.pruneSkills({ agent, dryRun, requestId, ...policy }, callSettings(cli)));
    const rows = done.pruned.map(({ name, version, agent: owner, reason }) => [`${bareName(name)}@${version}`, owner, reason]);
    cli.out.data(toJson(PruneSkillsResponseSchema, done, { alwaysEmitImplicit: true }), table(rows));
    for (const kept of done.kept) cli.out.note(staysLine(kept, `(${kept.reason}): it is called by ${kept.calledBy.join(', ')}`));
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
  for (const left of done.left) cli.out.note(staysLine(left, `archived: ${left.reason}`));
  if (done.skills.length === 0 && done.left.length === 0)
    cli.out.note('nothing to take back: it is undone, or somebody touched the skills since');
  return EXIT.ok;
}

const titled = (title: string, skills: readonly Skill[]) => (skills.length === 0 ? '' : `${title}:\n${skillTable(skills)}`);
const positive = integer(1, 1_000_000);

/** Commands for reviewers. */
export const REVIEWING: readonly Entry[] = [
  plain(Skills.method.getSkillReview, {
    command: 'review <skill>',
    help: 'code, what changed, tests, findings, where it comes from; for reviewers, as are the next',
    flags: READER,
    text: reviewText,
    notes: ({ skill }, { cli }) => {
      if (skill?.status !== SkillStatus.PENDING_REVIEW) return [];
      const named = versionWords(skill);
      return [
        `to approve it: ${commandLine(cli, `skills approve ${named} --digest ${skill.digest}`)}`,
        `or not: ${commandLine(cli, `skills reject ${named} --reason TEXT`)}`,
      ];
    },
  }),
  ...DECISIONS,
  hand<PruneOptions>({
    command: 'prune',
    help: 'archive what is unused, failing or superseded; for reviewers',
    flags: {
      ...REPEAT,
      '--agent <name>': "only this agent's (default: all)",
      '--unused-days <n>': { help: 'active and not used for so long', parse: positive },
      '--failing-rate <x>': { help: 'active with a lower success rate', parse: fraction },
      '--failing-uses <n>': { help: 'after at least so many uses (default: 5)', parse: positive },
      '--superseded-days <n>': { help: 'deprecated for so long', parse: positive },
      '--dry-run': 'say what would be archived',
      '--undo <id>': 'take a pruning back',
    },
    run: pruneSkills,
  }),
  plain(Skills.method.revokeSource, {
    command: 'revoke <source>',
    help: 'withdraw what was learned from tasks/ID, episodes/ID, documents/ID, facts/ID, procedures/ID, wantedSkills/ID, imports/ID, users/USER or skills/NAME@VERSION; for reviewers',
    flags: { ...REPEAT, ...REASON, '--dry-run': 'say what would be withdrawn' },
    whole: true,
    text: ({ skills, facts }) => [skillTable(skills), list('facts', facts)].filter(Boolean).join('\n\n'),
    notes: ({ skills, facts }, { args: [source], options }) => {
      if (skills.length + facts.length === 0) return [`nothing rests on ${source ?? ''}: nothing was withdrawn`];
      const what = `${plural(skills.length, 'skill')} and ${plural(facts.length, 'fact')}`;
      return [options['dryRun'] === true ? `${what} would be withdrawn; nothing was changed` : `${what} withdrawn`];
    },
  }),
  plain(Skills.method.getSkillStats, {
    command: 'stats',
    help: 'offered, used, succeeded, fell back; what is used most, fails, or is never used; for reviewers',
    flags: { '--agent <name>': "only this agent's (default: all)" },
    whole: true,
    none: 'no skills',
    text: ({ agents, mostUsed, failing, unused }) => {
      const rows = agents.map(({ agent, byStatus, offeredCount, usedCount, succeededCount, fellBackCount }) => [
        agent,
        ...[offeredCount, usedCount, succeededCount, fellBackCount].map(String),
        Object.entries(byStatus)
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([status, count]) => `${count} ${status}`)
          .join(', '),
      ]);
      if (rows.length === 0) return '';
      const head = table([['AGENT', 'OFFERED', 'USED', 'SUCCEEDED', 'FELL BACK', 'SKILLS'], ...rows]);
      return [head, titled('most used', mostUsed), titled('failing', failing), titled('never used', unused)].filter(Boolean).join('\n\n');
    },
  }),
];
