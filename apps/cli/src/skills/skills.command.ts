import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Start } from '../cli.js';
import { integer, repeated } from '../options.js';
import { diffSkill, type DiffOptions } from './diff-skills.js';
import { addReviewing } from './review.command.js';
import {
  getSkill,
  listCategories,
  listSkills,
  listVersions,
  searchSkills,
  type SkillListOptions,
  type SkillSearchOptions,
} from './read-skills.js';
import { SKILL_SCOPES, SKILL_STATUSES } from './skill-lines.js';
import { pruneSkills, type PruneOptions, revokeSource, type RevokeOptions, skillStats } from './skill-hygiene.js';
import type { ReaderOptions } from './skill-reference.js';
import { exportSkill, importSkill, type ImportSkillOptions } from './transfer-skills.js';
import { useSkill, type UseOptions } from './use-skill.js';
import { requestSkill, type RequestOptions, showWanted, withdrawWanted } from './wanted-skills.js';
import { addSkill, type AddOptions, checkSkill, editSkill, verifySkill } from './write-skills.js';

const KINDS = ['function', 'snippet', 'procedure'] as const;

function fraction(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) throw new InvalidArgumentError('must be a number from 0 to 1');
  return value;
}

const reader = (command: Command) =>
  command
    .option('--agent <name>', 'as this agent sees it (default: all agents of the tenant)')
    .option('--user <name>', "with what is this user's (default: nobody's in particular)");

const repeatable = (command: Command) => command.option('--request-id <id>', 'makes a repeat harmless');

const REPEATABLE = {
  tests:
    'JSON list of {args, kwargs, expected} or {stdin, expected_stdout}, or Python with asserts, at its top level or in functions test_…; repeatable',
  heldOut: 'tests that are run and never shown; repeatable',
} as const;

/** What a draft says, for a new one and for the next version. `or` is what holds where a flag is left out. */
const draft = (command: Command, or: { readonly description: string; readonly entryPoint: string; readonly kind: string }) =>
  command
    .option('--description <text>', `what it does (default: ${or.description})`)
    .option('--display-name <text>', 'for people')
    .option('--test <file>', REPEATABLE.tests, repeated)
    .option('--held-out <file>', REPEATABLE.heldOut, repeated)
    .option('--category <path>', 'such as text.csv')
    .option('--tag <tag>', 'repeatable', repeated)
    .option('--example <prompt>', 'what somebody would ask for it with; repeatable', repeated)
    .option('--package <name==version>', 'that it needs; repeatable', repeated)
    .option('--source <name>', 'where it was learned, such as documents/ID; repeatable', repeated)
    .option('--entry-point <name>', `function that is called (default: ${or.entryPoint})`)
    .option('--program', 'it reads stdin and writes stdout')
    .addOption(new Option('--kind <kind>', `what it is (default: ${or.kind})`).choices([...KINDS]));

const newDraft = (command: Command) =>
  draft(command, { description: 'the docstring', entryPoint: 'told from the code', kind: 'function' })
    .option('--agent <name>', 'whose it is (default: default)')
    .option('--user <name>', "the user it belongs to (default: nobody's)");

const nextDraft = (command: Command) =>
  draft(command, {
    description: 'as it was; the new docstring, where it was the old one',
    entryPoint: 'as it was',
    kind: 'as it was',
  })
    .addOption(new Option('--scope <scope>', 'which one is edited, where several have its name').choices([...SKILL_SCOPES]))
    .option('--agent <name>', 'which one is edited: as this agent sees it (default: all agents of the tenant)')
    .option('--user <name>', "which one is edited: with what is this user's");

const scope = () => new Option('--scope <scope>', 'who reads it (default: agent)').choices([...SKILL_SCOPES]);

function addReading(skills: Command, start: Start): void {
  reader(skills.command('list'))
    .description('name, version, status, uses and success rate of each')
    .addOption(new Option('--status <status>', 'only in this status').choices([...SKILL_STATUSES]))
    .option('--category <path>', 'only in this category or below')
    .option('--tag <tag>', 'only with this tag; repeatable', repeated)
    .option('--limit <n>', 'how many', integer(1, 100_000), 100)
    .action((options: SkillListOptions, command: Command) => start(command, (cli) => listSkills(cli, options)));
  reader(skills.command('get <skill>'))
    .alias('show')
    .description('everything about it: contract, proof, history, code; NAME@VERSION for one version')
    .option('--code', 'its code alone')
    .action((skill: string, options: ReaderOptions & { code?: boolean }, command: Command) =>
      start(command, (cli) => getSkill(cli, skill, options)),
    );
  reader(skills.command('versions <skill>'))
    .description('all of them, newest first')
    .action((skill: string, options: ReaderOptions, command: Command) => start(command, (cli) => listVersions(cli, skill, options)));
  reader(skills.command('search <query>'))
    .description('active skills, by meaning and by words')
    .option('--tag <tag>', 'only with this tag; repeatable', repeated)
    .option('--limit <n>', 'how many (default: 5)', integer(1, 100))
    .option('--similarity-min <x>', 'default: 0.7, "probably the same task"', fraction)
    .action((query: string, options: SkillSearchOptions, command: Command) => start(command, (cli) => searchSkills(cli, query, options)));
  reader(skills.command('categories [parent]'))
    .description('at the top, or below one of them')
    .action((parent: string | undefined, options: ReaderOptions, command: Command) =>
      start(command, (cli) => listCategories(cli, parent, options)),
    );
  reader(skills.command('diff <skill>'))
    .description('what changed between two versions')
    .option('--from <n>', 'version (default: the one before)', integer(1, 1_000_000))
    .option('--to <n>', 'version (default: the newest)', integer(1, 1_000_000))
    .action((skill: string, options: DiffOptions, command: Command) => start(command, (cli) => diffSkill(cli, skill, options)));
}

function addWriting(skills: Command, start: Start): void {
  repeatable(newDraft(skills.command('add <file>')))
    .description('register a skill; - reads stdin')
    .option('--name <name>', 'small letters, digits and "_" (default: that of the file)')
    .addOption(scope())
    .option('--wait', 'until it is verified and settled')
    .action((file: string, options: AddOptions, command: Command) => start(command, (cli) => addSkill(cli, file, options)));
  repeatable(nextDraft(skills.command('edit <skill> <file>')))
    .description('the next version, with this code; - reads stdin. What is not given stays as it was, and so does whose it is')
    .option('--wait', 'until it is verified and settled')
    .action((skill: string, file: string, options: AddOptions, command: Command) =>
      start(command, (cli) => editSkill(cli, skill, file, options)),
    );
  newDraft(skills.command('test <file>'))
    .description('what verification would find; stores nothing')
    .option('--name <name>', 'default: that of the file')
    .action((file: string, options: AddOptions, command: Command) => start(command, (cli) => checkSkill(cli, file, options)));
  repeatable(reader(skills.command('verify <skill>')))
    .description('verify a version again; what is active stays so meanwhile')
    .action((skill: string, options: ReaderOptions & { requestId?: string }, command: Command) =>
      start(command, (cli) => verifySkill(cli, skill, options)),
    );
}

function addUsing(skills: Command, start: Start): void {
  repeatable(reader(skills.command('use <skill> [arguments...]')))
    .description('run it with NAME=VALUE each; a value that is JSON is taken as such. No model is asked')
    .option('--json-args <json>', 'all arguments as one JSON object; @FILE reads a file, - reads stdin')
    .option('--stdin <text>', 'for a program; @FILE reads a file, - reads stdin')
    .action((skill: string, pairs: string[], options: UseOptions, command: Command) =>
      start(command, (cli) => useSkill(cli, skill, pairs, options)),
    );
  repeatable(skills.command('request <skill> <description>'))
    .description('ask for a skill that is missing; @FILE reads a file, - reads stdin')
    .option('--agent <name>', 'who misses it (default: default)')
    .option('--user <name>', 'for this user')
    .option('--example <json>', 'arguments that it would be called with')
    .action((skill: string, description: string, options: RequestOptions, command: Command) =>
      start(command, (cli) => requestSkill(cli, skill, description, options)),
    );
  skills
    .command('wanted [wanted]')
    .description('skills that were asked for, and what became of them')
    .option('--agent <name>', "only this agent's")
    .option('--user <name>', "this user's as well; without it nobody's in particular, for reviewers everybody's")
    .option('--limit <n>', 'how many', integer(1, 100_000), 100)
    .action((wanted: string | undefined, options: ReaderOptions & { limit: number }, command: Command) =>
      start(command, (cli) => showWanted(cli, wanted, options)),
    );
  skills
    .command('withdraw <wanted>')
    .description('take back what was asked for, unless it is written already')
    .option('--user <name>', 'the user who asked')
    .option('--reason <text>', 'shown with it')
    .action((wanted: string, options: { user?: string; reason?: string }, command: Command) =>
      start(command, (cli) => withdrawWanted(cli, wanted, options)),
    );
}

function addTransfer(skills: Command, start: Start): void {
  reader(skills.command('export <skill> <path>'))
    .description('as a folder of the Agent Skills format, or a .zip of it')
    .option('--force', 'overwrite what is there')
    .action((skill: string, path: string, options: ReaderOptions & { force?: boolean }, command: Command) =>
      start(command, (cli) => exportSkill(cli, skill, path, options)),
    );
  repeatable(skills.command('import <path>'))
    .description('a folder, .zip or .tar.gz of the Agent Skills format; it waits for review')
    .option('--agent <name>', 'whose it will be (default: default)')
    .option('--user <name>', "the user it belongs to (default: nobody's)")
    .addOption(scope())
    .option('--dry-run', 'say what would be stored')
    .option('--wait', 'until all are verified')
    .action((path: string, options: ImportSkillOptions, command: Command) => start(command, (cli) => importSkill(cli, path, options)));
}

function addHygiene(skills: Command, start: Start): void {
  repeatable(skills.command('prune'))
    .description('archive what is unused, failing or superseded; for reviewers')
    .option('--agent <name>', "only this agent's (default: all)")
    .option('--unused-days <n>', 'active and not used for so long', integer(1, 36_500))
    .option('--failing-rate <x>', 'active with a lower success rate', fraction)
    .option('--failing-uses <n>', 'after at least so many uses (default: 5)', integer(1, 1_000_000))
    .option('--superseded-days <n>', 'deprecated for so long', integer(1, 36_500))
    .option('--dry-run', 'say what would be archived')
    .option('--undo <id>', 'take a pruning back')
    .action((options: PruneOptions, command: Command) => start(command, (cli) => pruneSkills(cli, options)));
  repeatable(skills.command('revoke <source>'))
    .description(
      'withdraw what was learned from tasks/ID, episodes/ID, documents/ID, facts/ID, procedures/ID, wantedSkills/ID, imports/ID, users/USER or skills/NAME@VERSION; for reviewers',
    )
    .option('--reason <text>', 'kept in the history')
    .option('--dry-run', 'say what would be withdrawn')
    .action((source: string, options: RevokeOptions, command: Command) => start(command, (cli) => revokeSource(cli, source, options)));
  skills
    .command('stats')
    .description('offered, used, succeeded, fell back; what is used most, fails, or is never used; for reviewers')
    .option('--agent <name>', "only this agent's (default: all)")
    .action((options: { agent?: string }, command: Command) => start(command, (cli) => skillStats(cli, options)));
}

/** `skills`: what was learned as code. */
export function addSkills(program: Command, start: Start): void {
  const skills = program.command('skills').description('what was learned as code, and verified');
  addReading(skills, start);
  addWriting(skills, start);
  addUsing(skills, start);
  addReviewing(skills, start);
  addTransfer(skills, start);
  addHygiene(skills, start);
}
