import { Skills, SkillSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Command } from 'commander';
import { commandLine, type Start } from '../cli.js';
import { addNoun, type Entry, type Flags, LIMIT, plain } from '../command.js';
import { bareName, details } from '../show.js';
import { REVIEWING } from './review-skills.js';
import { READER, SKILL_COLUMNS, wantedCommand } from './skill-lines.js';
import { TRANSFER } from './transfer-skills.js';
import { objectOf, USE } from './use-skill.js';
import { WRITING } from './write-skills.js';

const TAGS: Flags = { '--tag <tag>': 'only with this tag; repeatable' };

const READING: readonly Entry[] = [
  plain(Skills.method.listSkills, {
    command: 'list',
    help: 'list skills',
    flags: {
      ...READER,
      '--status <status>': 'only in this status',
      '--category <path>': 'only in this category or below',
      ...TAGS,
      ...LIMIT(100),
    },
    columns: SKILL_COLUMNS,
  }),
  plain(Skills.method.getSkill, {
    command: 'get <skill>',
    help: 'show a skill; NAME@VERSION shows one version',
    flags: { ...READER, '--code': 'print only the code' },
    text: (skill, { options }) => (options['code'] === true ? skill.code : details(SkillSchema, skill)),
  }),
  plain(Skills.method.listSkillVersions, {
    command: 'versions <skill>',
    help: 'list all versions, newest first',
    flags: READER,
    columns: SKILL_COLUMNS,
  }),
  plain(Skills.method.searchSkills, {
    command: 'search <query>',
    help: 'search active skills by meaning and by words',
    flags: {
      ...READER,
      ...TAGS,
      '--limit <n>': { help: 'how many (default: 5)', field: 'maxResults' },
      '--similarity-min <x>': { help: 'least similarity (default: 0.7, "probably the same task")', field: 'minSimilarity' },
    },
    columns: ['similarity', ...SKILL_COLUMNS.map((column) => `skill.${column}`)],
    none: 'nothing found; --similarity-min 0 shows also what is less alike',
  }),
  plain(Skills.method.listSkillCategories, {
    command: 'categories [parent]',
    help: 'list the top categories, or those below a parent',
    flags: READER,
    columns: ['category', 'skill_count'],
  }),
  plain(Skills.method.diffSkill, {
    command: 'diff <skill>',
    help: 'show the changes between two versions',
    flags: {
      ...READER,
      '--from <n>': { help: 'version (default: the one before)', field: 'fromVersion' },
      '--to <n>': { help: 'version (default: the newest)', field: 'toVersion' },
    },
  }),
];

const USING: readonly Entry[] = [
  USE,
  plain(Skills.method.requestSkill, {
    command: 'request <skill> <description>',
    help: 'request a missing skill; @FILE reads a file, - reads stdin',
    flags: {
      '--agent <name>': { help: 'agent that needs the skill', usual: 'default' },
      '--user <name>': 'for this user',
      '--example <json>': { help: 'example arguments of a call', parse: (json: string) => objectOf(json, '--example') },
    },
    ask: (request) => ({ ...request, name: bareName(request.name ?? '') }),
    notes: ({ name, user }, { cli }) => [`${commandLine(cli, wantedCommand(name, user))} shows its state`],
  }),
  plain(Skills.method.listWantedSkills, {
    command: 'wanted',
    help: 'list requested skills and their states',
    flags: {
      '--agent <name>': "only this agent's requests",
      '--user <name>': "include this user's requests; reviewers see all users",
      ...LIMIT(100),
    },
    columns: ['name', 'skill', 'agent', 'user', 'state', 'asked', 'reason', 'description'],
    none: 'no skills were asked for',
  }),
  plain(Skills.method.getWantedSkill, {
    command: 'wish <wanted>',
    help: 'show one requested skill and its state',
    flags: { '--user <name>': 'user who requested the skill' },
  }),
  plain(Skills.method.withdrawWantedSkill, {
    command: 'withdraw <wanted>',
    help: 'withdraw the request for a skill',
    flags: { '--user <name>': 'user who requested the skill', '--reason <text>': 'reason, shown with the request' },
    repeat: true,
  }),
];

export function addSkills(program: Command, start: Start): void {
  const entries = [...READING, ...WRITING, ...USING, ...REVIEWING, ...TRANSFER];
  addNoun(program, start, 'skills', 'skills: verified code that was learned', entries);
}
