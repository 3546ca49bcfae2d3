import { Skills, SkillSchema, type UseSkillResponse } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Command } from 'commander';
import { commandLine, type Start } from '../cli.js';
import { addNoun, type Entry, type Flags, type Given, LIMIT, plain, wholeSkill } from '../command.js';
import { bareName, details } from '../show.js';
import { REVIEWING } from './review-skills.js';
import { READER, SKILL_COLUMNS, wantedCommand } from './skill-lines.js';
import { TRANSFER } from './transfer-skills.js';
import { WRITING } from './write-skills.js';
import { type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { parseExactJson } from '@etude/contracts/json';
import { CliError, EXIT } from '../errors.js';
import { jsonIn, readArgument } from '../files.js';

const HINT = [
  'NAME=VALUE is one argument, read as JSON if possible, else as text; --json-args takes all arguments as one JSON object',
  './etude skills get SKILL lists the arguments',
];

export function argumentsOf(pairs: readonly string[], json: string | undefined): JsonObject {
  if (json !== undefined && pairs.length > 0) throw new CliError(EXIT.usage, 'give arguments as NAME=VALUE or with --json-args, not both');
  if (json !== undefined) return objectOf(json, '--json-args');
  const named = pairs.map((pair): [string, JsonValue] => {
    const at = pair.indexOf('=');
    if (at < 1) throw new CliError(EXIT.usage, `${JSON.stringify(pair)} is not NAME=VALUE`, HINT);
    return [pair.slice(0, at), valueOf(pair.slice(at + 1))];
  });
  return Object.fromEntries(named);
}

function objectOf(json: string, flag: string): JsonObject {
  const value = jsonIn(json, flag) as JsonValue;
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new CliError(EXIT.usage, `${flag} is not a JSON object`, ['write the arguments of a call by name, such as {"text": "a,b"}']);
}

/** Parses JSON text, or returns any other text unchanged. @throws CliError for a number that can't be sent exactly */
function valueOf(text: string): JsonValue {
  try {
    return parseExactJson(text) as JsonValue;
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw new CliError(EXIT.usage, (error as Error).message, [], { cause: error });
  }
}

const USE = plain(Skills.method.useSkill, {
  command: 'use <skill> [arguments...]',
  help: 'run a skill; each argument is NAME=VALUE',
  flags: {
    ...READER,
    '--json-args <json>': { help: 'all arguments as one JSON object; @FILE reads a file, - reads stdin', reads: true },
    '--stdin <text>': { help: 'stdin of a program; @FILE reads a file, - reads stdin', reads: true },
    '--request-missing': 'request a missing skill, which a model then writes; needs --agent',
  },
  ask: async ({ agent = '', user = '', requestId = '', stdin = '' }, { args: [skill = '', ...pairs], options }) => {
    const { jsonArgs, requestMissing = false } = options as { readonly jsonArgs?: string; readonly requestMissing?: boolean };
    const parameters = argumentsOf(pairs, jsonArgs === undefined ? undefined : await readArgument(jsonArgs));
    return { name: wholeSkill(skill), agent, user, parameters, stdin, requestId, noRequest: !requestMissing };
  },
  text: (used) => (used.success ? outcomeText(used) : used.output.trimEnd()),
  notes: (used, given) => {
    const asked = bareName(given.args[0] ?? '');
    const isOther = !isMissing(used) && bareName(used.name) !== asked;
    return [
      ...(isOther ? [`answered by ${bareName(used.name)}@${used.version}, which replaced ${asked}`] : []),
      ...(used.note === '' ? [] : [used.note]),
      ...(used.success ? [] : failureNotes(used, given)),
    ];
  },
  exit: (used) => (used.success ? EXIT.ok : isMissing(used) ? EXIT.notFound : EXIT.failed),
});

function outcomeText({ output, result }: UseSkillResponse): string {
  const value = result === undefined ? null : toJson(ValueSchema, result);
  const answer = value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  return [output.trimEnd(), answer].filter((part) => part !== '').join('\n');
}

function failureNotes(used: UseSkillResponse, { cli, args, options }: Given): string[] {
  const { user = '' } = options as { readonly user?: string };
  const { name, version, error, skillRequestSubmitted, wantedSkill } = used;
  const failed = isMissing(used) ? `${bareName(args[0] ?? '')}: ${error}` : `${bareName(name)}@${version} failed: ${error}`;
  if (skillRequestSubmitted)
    return [failed, `the skill was requested; ${commandLine(cli, wantedCommand(wantedSkill, user))} shows its state`];
  if (!isMissing(used)) return [failed];
  return [failed, 'skills search WORDS finds skills by their purpose; --request-missing with --agent has a model write the missing one'];
}

const isMissing = ({ version }: Pick<UseSkillResponse, 'version'>) => version === 0;

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
      '--limit <n>': { help: 'most results (default: 5)', field: 'maxResults' },
      '--similarity-min <x>': { help: 'least similarity (default: 0.7, "probably the same task")', field: 'minSimilarity' },
    },
    columns: ['similarity', ...SKILL_COLUMNS.map((column) => `skill.${column}`)],
    none: 'nothing found; --similarity-min 0 also shows less similar skills',
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
      '--from <n>': { help: 'version (default: the previous version)', field: 'fromVersion' },
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
