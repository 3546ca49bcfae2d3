import { type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { Skills, type UseSkillResponse } from '@etude/contracts/gen/etude/v1/skills_pb';
import { parseExactJson } from '@etude/contracts/json';
import { commandLine } from '../cli.js';
import { type Entry, type Flags, type Given, plain, REPEAT, wholeSkill } from '../command.js';
import { CliError, EXIT, type ExitCode } from '../errors.js';
import { readArgument } from '../files.js';
import { bareName, wantedCommand } from './skill-lines.js';

const HINT = [
  'NAME=VALUE gives one argument, as JSON where it is JSON and as text else; --json-args takes all of them as one JSON object',
  './etude skills get SKILL says which arguments it takes',
];

/** Arguments of a call, from "NAME=VALUE" each, or one JSON object. @throws CliError */
export function argumentsOf(pairs: readonly string[], json: string | undefined): JsonObject {
  if (json !== undefined && pairs.length > 0) throw new CliError(EXIT.usage, 'give arguments as NAME=VALUE or with --json-args, not both');
  if (json !== undefined) return objectOf(json, '--json-args', HINT);
  const named = pairs.map((pair): [string, JsonValue] => {
    const at = pair.indexOf('=');
    if (at < 1) throw new CliError(EXIT.usage, `${JSON.stringify(pair)} is no argument`, HINT);
    return [pair.slice(0, at), valueOf(pair.slice(at + 1))];
  });
  const twice = named.find(([name], index) => named.findIndex(([other]) => other === name) < index);
  if (twice !== undefined) throw new CliError(EXIT.usage, `the argument ${twice[0]} is given twice`);
  return Object.fromEntries(named);
}

/** @param flag that gave it, for messages. @throws CliError */
export function objectOf(json: string, flag: string, hint: readonly string[]): JsonObject {
  const value = jsonIn(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new CliError(EXIT.usage, `${flag} is no JSON object`, hint);
  return value;
}

/** Text that is no JSON stands for itself. @throws CliError for a whole number that JSON's numbers would change */
function valueOf(text: string): JsonValue {
  if (/^-?[0-9]+$/.test(text) && !Number.isSafeInteger(Number(text)))
    throw new CliError(EXIT.usage, `${text} is too large for a number in JSON`, [`as text it is '"${text}"', with its quotes`]);
  return jsonIn(text) ?? (text.trim() === 'null' ? null : text);
}

/** Undefined for what is no JSON. @throws CliError for JSON that can't be sent as it is written */
function jsonIn(text: string): JsonValue | undefined {
  try {
    return parseExactJson(text) as JsonValue;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw new CliError(EXIT.usage, (error as Error).message, [], { cause: error });
  }
}

/** `skills use`. */
export const useSkill = (reader: Flags): Entry =>
  plain(Skills.method.useSkill, {
    command: 'use <skill> [arguments...]',
    help: 'run it with NAME=VALUE each; a value that is JSON is taken as such. No model is asked',
    flags: {
      ...reader,
      ...REPEAT,
      '--json-args <json>': { help: 'all arguments as one JSON object; @FILE reads a file, - reads stdin', reads: true },
      '--stdin <text>': { help: 'for a program; @FILE reads a file, - reads stdin', reads: true },
    },
    ask: async ({ agent = '', user = '', requestId = '', stdin = '' }, { args: [skill = '', ...pairs], options }) => {
      const { jsonArgs } = options as { readonly jsonArgs?: string };
      if (jsonArgs === '-' && options['stdin'] === '-')
        throw new CliError(EXIT.usage, 'only one of --json-args and --stdin can be read from stdin');
      const parameters = argumentsOf(pairs, jsonArgs === undefined ? undefined : await readArgument(jsonArgs));
      return { name: wholeSkill(skill), agent, user, parameters, stdin, requestId };
    },
    text: (used) => (used.success ? outcomeText(used) : used.output.trimEnd()),
    notes: (used, given) => {
      const asked = bareName(given.args[0] ?? '');
      const isOther = !isMissing(used) && bareName(used.name) !== asked;
      return [
        ...(isOther ? [`answered by ${bareName(used.name)}@${used.version}, which took the place of ${asked}`] : []),
        ...(used.note === '' ? [] : [used.note]),
        ...(used.success ? [] : failureNotes(used, given)),
      ];
    },
    exit: exitOf,
  });

/** What it printed, then what it answered: as it is where it is text, else as JSON. */
function outcomeText({ output, result }: UseSkillResponse): string {
  const value = result === undefined ? null : toJson(ValueSchema, result);
  const answer = value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  return [output.trimEnd(), answer].filter((part) => part !== '').join('\n');
}

function failureNotes({ name, version, error, ...used }: UseSkillResponse, { cli, args, options }: Given): string[] {
  const { agent, user = '' } = options as { readonly agent?: string; readonly user?: string };
  const failed = isMissing({ version }) ? `${bareName(args[0] ?? '')}: ${error}` : `${bareName(name)}@${version} failed: ${error}`;
  if (used.skillRequestSubmitted)
    return [failed, `it was asked for; ${commandLine(cli, wantedCommand(used.wantedSkill, user))} tells what becomes of it`];
  return isMissing({ version }) && agent === undefined && error === 'Skill not found'
    ? [failed, `with --agent NAME it is asked for; ${commandLine(cli, 'skills list')} says which there are`]
    : [failed];
}

/** No version of it was run, because there is none to run. */
const isMissing = ({ version }: Pick<UseSkillResponse, 'version'>) => version === 0;

const exitOf = (used: UseSkillResponse): ExitCode => {
  if (used.success) return EXIT.ok;
  return isMissing(used) ? EXIT.notFound : EXIT.failed;
};
