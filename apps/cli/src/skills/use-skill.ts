import { randomUUID } from 'node:crypto';
import { type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { type UseSkillResponse, UseSkillResponseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { parseExactJson } from '@etude/contracts/json';
import { callSettings, ridingOut } from '../calls.js';
import { type Cli, commandLine, withGateway } from '../cli.js';
import { wholeSkill } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { readArgument } from '../files.js';
import { bareName, wantedCommand } from './skill-lines.js';

export interface UseOptions {
  readonly agent?: string;
  readonly user?: string;
  readonly jsonArgs?: string;
  readonly stdin?: string;
  readonly requestId?: string;
}

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

export async function useSkill(cli: Cli, options: UseOptions, [skill = '', ...pairs]: readonly string[]): Promise<number> {
  const { jsonArgs, stdin, requestId = randomUUID(), agent = '', user = '' } = options;
  if (jsonArgs === '-' && stdin === '-') throw new CliError(EXIT.usage, 'only one of --json-args and --stdin can be read from stdin');
  const parameters = argumentsOf(pairs, jsonArgs === undefined ? undefined : await readArgument(jsonArgs));
  const input = stdin === undefined ? '' : await readArgument(stdin);
  const request = { name: wholeSkill(skill), agent, user, parameters, stdin: input, requestId };
  return withGateway(cli, async (gateway) => {
    const used = await ridingOut(cli.signal, () => gateway.skills.useSkill(request, callSettings(cli)));
    cli.out.data(toJson(UseSkillResponseSchema, used), used.success ? outcomeText(used) : used.output.trimEnd());
    if (!isMissing(used) && bareName(used.name) !== bareName(request.name))
      cli.out.note(`answered by ${bareName(used.name)}@${used.version}, which took the place of ${bareName(request.name)}`);
    if (used.note !== '') cli.out.note(used.note);
    if (!used.success) noteFailure(cli, options, { asked: skill, used });
    return exitOf(used);
  });
}

/** What it printed, then what it answered: as it is where it is text, else as JSON. */
function outcomeText({ output, result }: UseSkillResponse): string {
  const value = result === undefined ? null : toJson(ValueSchema, result);
  const answer = value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  return [output.trimEnd(), answer].filter((part) => part !== '').join('\n');
}

function noteFailure(
  cli: Cli,
  { agent = '', user = '' }: UseOptions,
  { asked, used }: { readonly asked: string; readonly used: UseSkillResponse },
): void {
  const { name, version, error, skillRequestSubmitted, wantedSkill } = used;
  cli.out.note(isMissing(used) ? `${bareName(asked)}: ${error}` : `${bareName(name)}@${version} failed: ${error}`);
  if (skillRequestSubmitted)
    cli.out.note(`it was asked for; ${commandLine(cli, wantedCommand(wantedSkill, user))} tells what becomes of it`);
  else if (isMissing(used) && agent === '' && error === 'Skill not found')
    cli.out.note(`with --agent NAME it is asked for; ${commandLine(cli, 'skills list')} says which there are`);
}

/** No version of it was run, because there is none to run. */
const isMissing = ({ version }: UseSkillResponse) => version === 0;

const exitOf = (used: UseSkillResponse) => {
  if (used.success) return EXIT.ok;
  return isMissing(used) ? EXIT.notFound : EXIT.failed;
};
