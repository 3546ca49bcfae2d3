import { type Command, Option } from 'commander';
import type { Start } from '../cli.js';
import { integer } from '../options.js';
import {
  type ApproveOptions,
  approveSkill,
  archiveSkill,
  type DecisionOptions,
  deprecateSkill,
  promoteSkill,
  rejectSkill,
  restoreSkill,
  reviewSkill,
  rollbackSkill,
} from './review-skills.js';
import { SKILL_SCOPES, type ScopeWord } from './skill-lines.js';
import type { ReaderOptions } from './skill-reference.js';

const reader = (command: Command) =>
  command
    .option('--agent <name>', 'as this agent sees it (default: all agents of the tenant)')
    .option('--user <name>', "with what is this user's");

const decision = (command: Command) => reader(command).option('--request-id <id>', 'makes a repeat harmless');
const reason = (command: Command) => decision(command).option('--reason <text>', 'kept in the history');

/** What reviewers decide. A skill is NAME, or NAME@VERSION for one version of it. */
export function addReviewing(skills: Command, start: Start): void {
  reader(skills.command('review <skill>'))
    .description('code, what changed, tests, findings, where it comes from; for reviewers, as are the next')
    .action((skill: string, options: ReaderOptions, command: Command) => start(command, (cli) => reviewSkill(cli, skill, options)));
  decision(skills.command('approve <skill>'))
    .description('let a verified skill that waits for review be used')
    .option('--digest <sha256>', 'of what was reviewed, always needed; skills review prints the whole line')
    .option('--merge <skill>', 'that does the same: it is deprecated, and its uses go to this one')
    .action((skill: string, options: ApproveOptions, command: Command) => start(command, (cli) => approveSkill(cli, skill, options)));
  decision(skills.command('reject <skill>'))
    .description('so that it is not used')
    .requiredOption('--reason <text>', 'why; kept in the history')
    .action((skill: string, options: DecisionOptions, command: Command) => start(command, (cli) => rejectSkill(cli, skill, options)));
  reason(skills.command('rollback <skill>'))
    .description('an earlier version is used again')
    .option('--to <n>', 'version (default: the newest that was active before)', integer(1, 1_000_000))
    .action((skill: string, options: DecisionOptions & { to?: number }, command: Command) =>
      start(command, (cli) => rollbackSkill(cli, skill, options)),
    );
  reason(skills.command('deprecate <skill>'))
    .description('no longer offered')
    .option('--replaced-by <skill>', 'that is used in its place')
    .action((skill: string, options: DecisionOptions & { replacedBy?: string }, command: Command) =>
      start(command, (cli) => deprecateSkill(cli, skill, options)),
    );
  reason(skills.command('archive <skill>'))
    .description('out of sight, every version unless one is named')
    .action((skill: string, options: DecisionOptions, command: Command) => start(command, (cli) => archiveSkill(cli, skill, options)));
  reason(skills.command('restore <skill>'))
    .description('bring an archived one back')
    .action((skill: string, options: DecisionOptions, command: Command) => start(command, (cli) => restoreSkill(cli, skill, options)));
  decision(skills.command('promote <skill>'))
    .description('a copy for more readers; it waits for review there')
    .addOption(
      new Option('--scope <scope>', 'who reads the copy').choices(SKILL_SCOPES.filter((scope) => scope !== 'agent')).makeOptionMandatory(),
    )
    .action((skill: string, options: DecisionOptions & { scope: ScopeWord }, command: Command) =>
      start(command, (cli) => promoteSkill(cli, skill, options)),
    );
}
