import { Skills, SkillStatus, WantedSkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { toJson } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { callSettings, inPages } from '../calls.js';
import { type Cli, commandLine, type Start, withGateway } from '../cli.js';
import { addNoun, type Entry, type Flags, hand, LIMIT, plain, REPEAT, resource } from '../command.js';
import { EXIT } from '../errors.js';
import { repeated } from '../options.js';
import { plural, table } from '../output.js';
import { REVIEWING } from './review-skills.js';
import {
  bareName,
  diffText,
  nextNotes,
  SKILL_SCOPES,
  skillTable,
  skillText,
  doneLine,
  wantedCommand,
  wantedTable,
  wantedText,
} from './skill-lines.js';
import { exportSkill, importSkill } from './transfer-skills.js';
import { objectOf, useSkill } from './use-skill.js';
import { addSkill, checkSkill, editSkill, VERIFY_TIMEOUT_MS } from './write-skills.js';

const READER: Flags = {
  '--agent <name>': 'as this agent sees it (default: all agents of the tenant)',
  '--user <name>': "with what is this user's (default: nobody's in particular)",
};
const SCOPE: Flags = { '--scope <scope>': { help: 'who reads it (default: agent)', choices: SKILL_SCOPES } };
const OWNER: Flags = {
  '--agent <name>': 'whose it is (default: default)',
  '--user <name>': "the user it belongs to (default: nobody's)",
};
const TAGS: Flags = { '--tag <tag>': 'only with this tag; repeatable' };

const READING: readonly Entry[] = [
  plain(Skills.method.listSkills, {
    command: 'list',
    help: 'name, version, status, uses and success rate of each',
    flags: {
      ...READER,
      '--status <status>': 'only in this status',
      '--category <path>': 'only in this category or below',
      ...TAGS,
      ...LIMIT(100),
    },
    list: 'skills',
    text: ({ skills }) => skillTable(skills),
    none: 'no skills',
  }),
  plain(Skills.method.getSkill, {
    command: 'get <skill>',
    alias: 'show',
    help: 'everything about a skill: contract, proof, history, code; NAME@VERSION for one version',
    flags: { ...READER, '--code': 'its code alone' },
    text: (skill, { options }) => (options['code'] === true ? skill.code : skillText(skill)),
  }),
  plain(Skills.method.listSkillVersions, {
    command: 'versions <skill>',
    help: 'all versions, newest first',
    flags: READER,
    text: ({ skills }) => skillTable(skills),
  }),
  plain(Skills.method.searchSkills, {
    command: 'search <query>',
    help: 'active skills, by meaning and by words',
    flags: {
      ...READER,
      ...TAGS,
      '--limit <n>': { help: 'how many (default: 5)', field: 'maxResults' },
      '--similarity-min <x>': { help: 'default: 0.7, "probably the same task"', field: 'minSimilarity' },
    },
    whole: true,
    text: ({ hits }) => {
      const near = ['NEAR', ...hits.map(({ similarity }) => similarity.toFixed(2))];
      const lines = skillTable(hits.flatMap(({ skill }) => skill ?? []));
      return lines === '' ? '' : lines.replace(/^/gm, () => `${near.shift() ?? ''}  `);
    },
    none: 'nothing found; --similarity-min 0 shows also what is less alike',
  }),
  plain(Skills.method.listSkillCategories, {
    command: 'categories [parent]',
    help: 'categories at the top, or below one of them',
    flags: READER,
    whole: true,
    text: ({ categories }) => table(categories.map(({ category, skillCount }) => [category, plural(skillCount, 'skill')])),
    none: ({ args: [parent] }) => (parent === undefined ? 'no categories' : `no categories below ${parent}`),
  }),
  plain(Skills.method.diffSkill, {
    command: 'diff <skill>',
    help: 'what changed between two versions',
    flags: {
      ...READER,
      '--from <n>': { help: 'version (default: the one before)', field: 'fromVersion' },
      '--to <n>': { help: 'version (default: the newest)', field: 'toVersion' },
    },
    text: diffText,
    notes: (diff) => (diffText(diff) === '' ? [`versions ${diff.fromVersion} and ${diff.toVersion} are the same`] : []),
  }),
];

const listFlag = (help: string) => ({ help: `${help}; repeatable`, parse: repeated });

/** Flags that say what a skill is, for a new one and for the next version. `usual` says what holds where one is left out. */
const draftFlags = (usual: { readonly description: string; readonly entryPoint: string; readonly kind: string }): Flags => ({
  '--description <text>': `what it does (default: ${usual.description})`,
  '--display-name <text>': 'for people',
  '--test <file>': listFlag(
    'JSON list of {args, kwargs, expected} or {stdin, expected_stdout}, or Python with asserts, at its top level or in functions test_…',
  ),
  '--held-out <file>': listFlag('tests that are run and never shown'),
  '--category <path>': 'such as text.csv',
  '--tag <tag>': { help: 'repeatable', parse: repeated },
  '--example <prompt>': listFlag('what somebody would ask for it with'),
  '--package <name==version>': listFlag('that it needs'),
  '--source <name>': listFlag('where it was learned, such as documents/ID'),
  '--entry-point <name>': `function that is called (default: ${usual.entryPoint})`,
  '--program': 'it reads stdin and writes stdout',
  '--kind <kind>': { help: `what it is (default: ${usual.kind})`, choices: ['function', 'snippet', 'procedure'] },
});

const NEW_DRAFT = { ...draftFlags({ description: 'the docstring', entryPoint: 'told from the code', kind: 'function' }), ...OWNER };
const NEXT_DRAFT: Flags = {
  ...draftFlags({ description: 'as it was; the new docstring, where it was the old one', entryPoint: 'as it was', kind: 'as it was' }),
  '--scope <scope>': { help: 'which one is edited, where several have its name', choices: SKILL_SCOPES },
  '--agent <name>': 'which one is edited: as this agent sees it (default: all agents of the tenant)',
  '--user <name>': "which one is edited: with what is this user's",
};
const WAIT: Flags = { '--wait': 'until it is verified and settled' };

const WRITING: readonly Entry[] = [
  hand({
    command: 'add <file>',
    help: 'register a skill; - reads stdin',
    flags: { ...NEW_DRAFT, ...REPEAT, '--name <name>': 'small letters, digits and "_" (default: that of the file)', ...SCOPE, ...WAIT },
    run: addSkill,
  }),
  hand({
    command: 'edit <skill> <file>',
    help: 'the next version, with this code; - reads stdin. What is not given stays as it was, and so does its owner',
    flags: { ...NEXT_DRAFT, ...REPEAT, ...WAIT },
    run: editSkill,
  }),
  checkSkill({ ...NEW_DRAFT, '--name <name>': 'default: that of the file' }),
  plain(Skills.method.verifySkill, {
    command: 'verify <skill>',
    help: 'verify a version again; an active version stays active meanwhile',
    flags: { ...READER, ...REPEAT },
    leastMs: VERIFY_TIMEOUT_MS,
    status: ([skill = '']) => `verifying ${skill} …`,
    text: doneLine,
    notes: (skill, { cli }) => nextNotes(cli, skill),
    exit: ({ status }) => (status === SkillStatus.REJECTED ? EXIT.failed : EXIT.ok),
  }),
];

interface WantedOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly limit: number;
}

/** Shows one skill that was asked for, or all of them. */
function showWanted(cli: Cli, { agent = '', user = '', limit }: WantedOptions, [wanted]: readonly string[]): Promise<number> {
  return withGateway(cli, async ({ skills }) => {
    if (wanted !== undefined) {
      const found = await skills.getWantedSkill({ name: resource('wanted', wanted), user }, callSettings(cli));
      cli.out.data(toJson(WantedSkillSchema, found), wantedText(found));
      return EXIT.ok;
    }
    const all = await inPages(limit, async (page) => {
      const { wantedSkills, nextPageToken } = await skills.listWantedSkills({ agent, user, ...page }, callSettings(cli));
      return { items: wantedSkills, nextPageToken };
    });
    cli.out.data({ wantedSkills: all.items.map((one) => toJson(WantedSkillSchema, one)) }, wantedTable(all.items));
    if (all.items.length === 0) cli.out.note('no skills were asked for');
    return EXIT.ok;
  });
}

const USING: readonly Entry[] = [
  useSkill(READER),
  plain(Skills.method.requestSkill, {
    command: 'request <skill> <description>',
    help: 'ask for a skill that is missing; @FILE reads a file, - reads stdin',
    flags: {
      ...REPEAT,
      '--agent <name>': { help: 'who misses it', usual: 'default' },
      '--user <name>': 'for this user',
      '--example <json>': {
        help: 'arguments that it would be called with',
        parse: (json: string) => objectOf(json, '--example', ['it holds the arguments of a call by their names, such as {"text": "a,b"}']),
      },
    },
    ask: (request) => ({ ...request, name: bareName(request.name ?? '') }),
    text: wantedText,
    notes: ({ name, user }, { cli }) => [`${commandLine(cli, wantedCommand(name, user))} tells what becomes of it`],
  }),
  hand<WantedOptions>({
    command: 'wanted [wanted]',
    help: 'skills that were asked for, and what became of them',
    flags: {
      '--agent <name>': "only this agent's",
      '--user <name>': "this user's as well; without it nobody's in particular, for reviewers everybody's",
      ...LIMIT(100),
    },
    run: showWanted,
  }),
  plain(Skills.method.withdrawWantedSkill, {
    command: 'withdraw <wanted>',
    help: 'take back what was asked for, unless it is written already',
    flags: { '--user <name>': 'the user who asked', '--reason <text>': 'shown with it' },
    repeat: true,
    text: wantedText,
  }),
];

const TRANSFER: readonly Entry[] = [
  hand({
    command: 'export <skill> <path>',
    help: 'as a folder of the Agent Skills format, or a .zip of it',
    flags: { ...READER, '--force': 'overwrite what is there' },
    run: exportSkill,
  }),
  hand({
    command: 'import <path>',
    help: 'a folder, .zip or .tar.gz of the Agent Skills format; it waits for review',
    flags: { ...OWNER, ...REPEAT, ...SCOPE, '--dry-run': 'say what would be stored', '--wait': 'until all are verified' },
    run: importSkill,
  }),
];

/** `skills`: what was learned as code. */
export function addSkills(program: Command, start: Start): void {
  const entries = [...READING, ...WRITING, ...USING, ...REVIEWING, ...TRANSFER];
  addNoun(program, start, 'skills', 'what was learned as code, and verified', entries);
}
