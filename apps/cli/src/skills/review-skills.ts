import type { DescMethodUnary } from '@bufbuild/protobuf';
import { PruneSkillsResponse_PrunedSchema, Skills, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { commandLine } from '../cli.js';
import { type Entry, type Flags, type Plain, plain, wholeSkill } from '../command.js';
import { plural } from '../output.js';
import { bareName, tableOf } from '../show.js';
import { doneLine, READER, SKILL_COLUMNS, versionWords } from './skill-lines.js';

const REASON: Flags = { '--reason <text>': 'kept in the history' };

/** A reviewer's decision. The call answers the skill as it is afterwards. */
const decision = <I extends DescMethodUnary['input']>(
  method: DescMethodUnary<I, typeof SkillSchema>,
  { flags, ...spec }: Plain<I, typeof SkillSchema>,
): Entry => plain(method, { flags: { ...READER, ...flags }, text: doneLine, ...spec });

const DECISIONS: readonly Entry[] = [
  decision(Skills.method.approveSkill, {
    command: 'approve <skill>',
    help: 'let a verified skill that waits for review be used',
    flags: {
      '--digest <sha256>': { help: 'of what was reviewed; skills review prints the whole line', required: true },
      '--merge <skill>': 'a skill that does the same, whose uses go to this one',
    },
    ask: (request) => ({ ...request, merge: request.merge ? wholeSkill(request.merge) : '' }),
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

export const REVIEWING: readonly Entry[] = [
  plain(Skills.method.getSkillReview, {
    command: 'review <skill>',
    help: 'what a reviewer has to see; for reviewers, as are the next',
    flags: READER,
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
  plain(Skills.method.pruneSkills, {
    command: 'prune',
    help: 'archive what is unused, failing or superseded',
    flags: {
      '--agent <name>': "only this agent's (default: all)",
      '--unused-days <n>': 'active and not used for so long',
      '--failing-rate <x>': { help: 'active with a lower success rate', field: 'failingRateMax' },
      '--failing-uses <n>': { help: 'after at least so many uses (default: 5)', field: 'failingUsesMin' },
      '--superseded-days <n>': 'deprecated for so long',
      '--dry-run': 'say what would be archived',
    },
    text: ({ pruned }) => tableOf(PruneSkillsResponse_PrunedSchema, pruned, ['name', 'version', 'agent', 'reason']),
    notes: ({ pruned, kept, pruneId }, { cli, options }) => {
      const stay = kept.map(
        ({ name, version, reason, calledBy }) => `${bareName(name)}@${version} stays (${reason}): it is called by ${calledBy.join(', ')}`,
      );
      const count = plural(pruned.length, 'skill');
      if (options['dryRun'] === true) return [...stay, `${count} would be archived; nothing was changed`];
      return [...stay, `${count} archived${pruneId && `; ${commandLine(cli, `skills unprune ${pruneId}`)} takes it back`}`];
    },
  }),
  plain(Skills.method.undoPrune, {
    command: 'unprune <prune-id>',
    help: 'take a pruning back',
    text: ({ skills }) => skills.map(doneLine).join('\n'),
    none: 'nothing was taken back',
    notes: ({ left }) => left.map(({ name, version, reason }) => `${bareName(name)}@${version} stays archived: ${reason}`),
  }),
  plain(Skills.method.revokeSource, {
    command: 'revoke <source>',
    help: 'withdraw what was learned from it, such as tasks/ID, documents/ID, users/USER, skills/NAME@VERSION',
    flags: { ...REASON, '--dry-run': 'say what would be withdrawn' },
    text: ({ skills, facts }) => [tableOf(SkillSchema, skills, SKILL_COLUMNS), ...facts].filter(Boolean).join('\n'),
    notes: ({ skills, facts }, { args: [source], options }) => {
      if (skills.length + facts.length === 0) return [`nothing rests on ${source ?? ''}: nothing was withdrawn`];
      const what = `${plural(skills.length, 'skill')} and ${plural(facts.length, 'fact')}`;
      return [options['dryRun'] === true ? `${what} would be withdrawn; nothing was changed` : `${what} withdrawn`];
    },
  }),
  plain(Skills.method.getSkillStats, {
    command: 'stats',
    help: 'what is used most, fails, or is never used',
    flags: { '--agent <name>': "only this agent's (default: all)" },
    none: 'no skills',
  }),
];
