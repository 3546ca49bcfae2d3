import type { DescMethodUnary } from '@bufbuild/protobuf';
import { PruneSkillsResponse_PrunedSchema, Skills, SkillSchema, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { commandLine } from '../cli.js';
import { type Entry, type Flags, type Plain, plain, wholeSkill } from '../command.js';
import { plural } from '../output.js';
import { bareName, tableOf } from '../show.js';
import { doneLine, READER, SKILL_COLUMNS, versionWords } from './skill-lines.js';

const REASON: Flags = { '--reason <text>': 'reason, stored in the history' };

const decision = <I extends DescMethodUnary['input']>(
  method: DescMethodUnary<I, typeof SkillSchema>,
  { flags, ...spec }: Plain<I, typeof SkillSchema>,
): Entry => plain(method, { flags: { ...READER, ...flags }, text: doneLine, ...spec });

export const REVIEWING: readonly Entry[] = [
  plain(Skills.method.getSkillReview, {
    command: 'review <skill>',
    help: 'show a skill to its reviewer; this and the next commands are for reviewers',
    flags: READER,
    notes: ({ skill }, { cli }) => {
      if (skill?.status !== SkillStatus.PENDING_REVIEW) return [];
      const named = versionWords(skill);
      return [
        `to approve it: ${commandLine(cli, `skills approve ${named} --digest ${skill.digest}`)}`,
        `to reject it: ${commandLine(cli, `skills reject ${named} --reason TEXT`)}`,
      ];
    },
  }),
  decision(Skills.method.approveSkill, {
    command: 'approve <skill>',
    help: 'approve a verified skill that waits for review',
    flags: {
      '--digest <sha256>': { help: 'digest of the reviewed version; `skills review` prints the whole command', required: true },
      '--merge <skill>': 'an equivalent skill that this one replaces for all callers',
    },
    ask: (request) => ({ ...request, merge: request.merge ? wholeSkill(request.merge) : '' }),
  }),
  decision(Skills.method.rejectSkill, {
    command: 'reject <skill>',
    help: 'reject a skill, so that it is not used',
    flags: { '--reason <text>': { help: 'reason, stored in the history', required: true } },
  }),
  decision(Skills.method.rollbackSkill, {
    command: 'rollback <skill>',
    help: 'activate an earlier version again',
    flags: { ...REASON, '--to <n>': { help: 'version (default: the newest that was active before)', field: 'toVersion' } },
  }),
  decision(Skills.method.deprecateSkill, {
    command: 'deprecate <skill>',
    help: 'mark a skill as deprecated; it is no longer offered',
    flags: { ...REASON, '--replaced-by <skill>': 'the skill that replaces it' },
    ask: (request) => ({ ...request, replacedBy: request.replacedBy ? wholeSkill(request.replacedBy) : '' }),
  }),
  decision(Skills.method.archiveSkill, {
    command: 'archive <skill>',
    help: 'archive a skill: one version if named, else all versions',
    flags: REASON,
  }),
  decision(Skills.method.restoreSkill, { command: 'restore <skill>', help: 'restore an archived skill', flags: REASON }),
  decision(Skills.method.promoteSkill, {
    command: 'promote <skill>',
    help: 'copy a skill to a wider scope; the copy waits for review there',
    flags: { '--scope <scope>': { help: 'readers of the copy', choices: ['user', 'tenant', 'global'], required: true } },
  }),
  plain(Skills.method.pruneSkills, {
    command: 'prune',
    help: 'archive unused, failing or superseded skills',
    flags: {
      '--agent <name>': "only this agent's records",
      '--unused-days <n>': 'archive active skills that were not used for n days',
      '--failing-rate <x>': { help: 'archive active skills with a lower success rate', field: 'failingRateMax' },
      '--failing-uses <n>': { help: 'least number of uses for --failing-rate (default: 5)', field: 'failingUsesMin' },
      '--superseded-days <n>': 'archive skills that were deprecated at least n days ago',
      '--dry-run': 'show what would be archived',
    },
    text: ({ pruned }) => tableOf(PruneSkillsResponse_PrunedSchema, pruned, ['name', 'version', 'agent', 'reason']),
    notes: ({ pruned, kept, pruneId }, { cli, options }) => {
      const stay = kept.map(
        ({ name, version, reason, calledBy }) => `${bareName(name)}@${version} stays (${reason}): ${calledBy.join(', ')} call it`,
      );
      const count = plural(pruned.length, 'skill');
      if (options['dryRun'] === true) return [...stay, `${count} would be archived; nothing was changed`];
      return [...stay, `${count} archived${pruneId && `; ${commandLine(cli, `skills unprune ${pruneId}`)} undoes the pruning`}`];
    },
  }),
  plain(Skills.method.undoPrune, {
    command: 'unprune <prune-id>',
    help: 'undo a pruning',
    text: ({ skills }) => skills.map(doneLine).join('\n'),
    none: 'nothing was restored',
    notes: ({ left }) => left.map(({ name, version, reason }) => `${bareName(name)}@${version} stays archived: ${reason}`),
  }),
  plain(Skills.method.revokeSource, {
    command: 'revoke <source>',
    help: 'withdraw skills and facts learned from a source: tasks/ID, documents/ID, users/USER or skills/NAME@VERSION',
    flags: { ...REASON, '--dry-run': 'show what would be withdrawn' },
    text: ({ skills, facts }) => [tableOf(SkillSchema, skills, SKILL_COLUMNS), ...facts].filter(Boolean).join('\n'),
    notes: ({ skills, facts }, { args: [source], options }) => {
      if (skills.length + facts.length === 0) return [`nothing was learned from ${source ?? ''}: nothing was withdrawn`];
      const what = `${plural(skills.length, 'skill')} and ${plural(facts.length, 'fact')}`;
      return [options['dryRun'] === true ? `${what} would be withdrawn; nothing was changed` : `${what} withdrawn`];
    },
  }),
  plain(Skills.method.getSkillStats, {
    command: 'stats',
    help: 'show the skills that are used most, fail most or are never used',
    flags: { '--agent <name>': "only this agent's records" },
    none: 'no skills',
  }),
];
