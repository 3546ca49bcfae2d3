import { type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { Skills, type UseSkillResponse } from '@etude/contracts/gen/etude/v1/skills_pb';
import { parseExactJson } from '@etude/contracts/json';
import { commandLine } from '../cli.js';
import { type Given, plain, wholeSkill } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { jsonIn, readArgument } from '../files.js';
import { bareName } from '../show.js';
import { READER, wantedCommand } from './skill-lines.js';

const HINT = [
  'NAME=VALUE is one argument, read as JSON if possible, else as text; --json-args takes all arguments as one JSON object',
  './etude skills get SKILL lists the arguments',
];

/** Arguments of a call, from NAME=VALUE pairs or from one JSON object. @throws CliError for both at once or malformed ones */
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

/** Parses a JSON object. @param flag name of the flag, for messages. @throws CliError if the text is not a JSON object */
export function objectOf(json: string, flag: string): JsonObject {
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

export const USE = plain(Skills.method.useSkill, {
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

/** The printed output, then the result: text unchanged, any other value as JSON. */
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
