import { randomUUID } from 'node:crypto';
import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { DurationSchema, durationFromMs } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import { callSettings, inPages, ridingOut } from './calls.js';
import { type Cli, type Gateway, type Start, withGateway } from './cli.js';
import { CliError, EXIT, type ExitCode } from './errors.js';
import { readArgument } from './files.js';
import { duration, fraction, integer, keyValue, repeated } from './options.js';
import { details, jsonOf, tableOf } from './show.js';

/** One flag of a command. A request field of the same name decides how the flag is parsed. */
export interface Flag {
  readonly help: string;
  /** Field of the request, if its name is neither the flag's name nor its plural. */
  readonly field?: string;
  readonly usual?: unknown;
  readonly choices?: readonly string[];
  readonly required?: boolean;
  readonly parse?: (text: string, before: never) => unknown;
  /** `@FILE` reads a file, `-` reads stdin. */
  readonly reads?: boolean;
}
/** Flags by their syntax, such as `--limit <n>`. A string is the flag's help. */
export type Flags = Readonly<Record<string, string | Flag>>;
export type Options = Readonly<Record<string, unknown>>;

export type Entry = (noun: Command, start: Start) => void;

interface Hand<O> {
  /** Name and positional arguments, such as `get <task>`. */
  readonly command: string;
  readonly help: string;
  readonly flags?: Flags;
  /** Message whose fields get the values of the flags with the same names. */
  readonly fills?: DescMessage;
  readonly run: (cli: Cli, options: O, args: readonly string[]) => Promise<number>;
}

export interface Given {
  readonly cli: Cli;
  readonly gateway: Gateway;
  readonly options: Options;
  readonly args: readonly string[];
}

type Fields<I extends DescMessage> = Exclude<MessageInitShape<I>, { readonly $typeName: string }>;

/** A command that is one unary call. Positional arguments and flags fill the request, and the answer is printed. */
export interface Plain<I extends DescMessage, O extends DescMessage> extends Omit<Hand<Options>, 'run'> {
  /** Checks or replaces the request that flags and arguments have filled. @throws CliError */
  readonly ask?: (
    request: Fields<I>,
    given: Pick<Given, 'cli' | 'options' | 'args'>,
  ) => MessageInitShape<I> | void | Promise<MessageInitShape<I>>;
  /** Returns the answer to print instead of the first answer, such as the finished run. */
  readonly after?: (answer: MessageShape<O>, given: Given) => MessageShape<O> | Promise<MessageShape<O>>;
  /** Columns of a table with the answer's list, as paths of fields. All pages of the list are read, up to `--limit` items. */
  readonly columns?: readonly string[];
  /** Note on stderr if the text is empty. Default for a list: "no" and the list's name. */
  readonly none?: string | ((given: Given) => string);
  /** Default: a table if `columns` is set, otherwise all fields of the answer. */
  readonly text?: (answer: MessageShape<O>, given: Given) => string | Promise<string>;
  readonly notes?: (answer: MessageShape<O>, given: Given) => readonly string[] | Promise<readonly string[]>;
  readonly exit?: (answer: MessageShape<O>, given: Given) => ExitCode;
  /** Whether the call is retried while the gateway is unreachable. Calls with a request id are always retried. */
  readonly repeat?: boolean;
  /** Least timeout of the call, in ms. */
  readonly leastMs?: number;
  readonly status?: (args: readonly string[]) => string;
}

export const LIMIT = (usual: number): Flags => ({ '--limit <n>': { help: 'how many', usual, parse: integer(1, 100_000) } });
/** `plain` adds this flag if the request has a request id. Commands made with `hand` list it themselves. */
export const REPEAT: Flags = { '--request-id <id>': 'id of the request; a repeat with the same id changes nothing' };

export const CONFIRM: Flags = { '--yes': 'confirm the deletion' };
export function confirmed<Request>(request: Request, { options, args: [id = ''] }: Pick<Given, 'options' | 'args'>): Request {
  if (options['yes'] === true) return request;
  throw new CliError(EXIT.usage, `this permanently erases ${id}`, ['add --yes to confirm']);
}

const camel = (words: string) => words.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
const nameOf = (typed: string) => camel(/--([a-z-]+)/.exec(typed)?.[1] ?? '');

function fieldOf(input: DescMessage, name: string, { field = name }: Partial<Flag> = {}): DescField | undefined {
  return input.field[field] ?? input.field[`${field}s`];
}

const wordsOf = (field: DescField): readonly string[] =>
  field.fieldKind === 'enum' ? field.enum.values.filter(({ number }) => number > 0).map(({ localName }) => localName.toLowerCase()) : [];

/** In a field without presence, 0 means "not given", so its flag refuses 0. */
function parserOf(field: DescField): ((text: string, before: never) => unknown) | undefined {
  if (field.fieldKind === 'list') return repeated;
  if (field.fieldKind === 'map') return keyValue;
  if (field.fieldKind === 'message') return field.message.typeName === DurationSchema.typeName ? duration : undefined;
  if (field.fieldKind !== 'scalar') return undefined;
  if (field.scalar === ScalarType.DOUBLE) return fraction;
  return field.scalar === ScalarType.INT32 ? integer(field.proto.proto3Optional ? 0 : 1, 1_000_000) : undefined;
}

function optionOf(typed: string, told: string | Flag, input?: DescMessage): Option {
  const flag: Flag = typeof told === 'string' ? { help: told } : told;
  const field = input && fieldOf(input, nameOf(typed), flag);
  const option = new Option(typed, flag.help);
  const parse = flag.parse ?? (field && parserOf(field));
  const choices = flag.choices ?? (field ? wordsOf(field) : []);
  if (parse) option.argParser(parse as (text: string, before: unknown) => unknown);
  if (choices.length > 0) option.choices([...choices]);
  if (flag.usual !== undefined) option.default(flag.usual);
  return option.makeOptionMandatory(flag.required === true);
}

function addTo(noun: Command, { command: words, help, flags = {} }: Omit<Hand<never>, 'run'>, input?: DescMessage): Command {
  const command = noun.command(words).description(help);
  const repeat = input?.field['requestId'] ? REPEAT : {};
  for (const [typed, told] of Object.entries({ ...flags, ...repeat })) command.addOption(optionOf(typed, told, input));
  return command;
}

const wordsTyped = (command: Command) => command.processedArgs as ReadonlyArray<string | readonly string[] | undefined>;

export function hand<O>(spec: Hand<O>): Entry {
  return (noun, start) => {
    const command = addTo(noun, spec, spec.fills).allowExcessArguments(false);
    command.action(() => start(command, (cli) => spec.run(cli, command.opts() as O, wordsTyped(command).flat() as string[])));
  };
}

/** Prefix of a resource's name, by the name of its positional argument. */
const RESOURCES: Readonly<Record<string, string>> = {
  task: 'tasks',
  sandbox: 'sandboxes',
  agent: 'agents',
  run: 'consolidationRuns',
  wanted: 'wantedSkills',
  world: 'worlds',
};

/** The full name of a resource: "tasks/t1" for "t1" and for "tasks/t1". */
export function resource(kind: string, name: string): string {
  const prefix = `${RESOURCES[kind] ?? kind}/`;
  return name.startsWith(prefix) ? name : `${prefix}${name}`;
}

/** @param text "NAME" or "NAME@VERSION", with or without "skills/" before it. @throws CliError */
export function skillReference(text: string): { readonly name: string; readonly version: number } {
  const [, name = '', version = '0'] = /^(?:skills\/)?([^@/]+)(?:@([1-9][0-9]{0,8}))?$/.exec(text) ?? [];
  if (name === '')
    throw new CliError(EXIT.usage, `${JSON.stringify(text)} is not the name of a skill`, ['write NAME, or NAME@VERSION for one version']);
  return { name: `skills/${name}`, version: Number(version) };
}

export function wholeSkill(text: string): string {
  const { name, version } = skillReference(text);
  if (version > 0) throw new CliError(EXIT.usage, `name the skill without a version: ${name.replace('skills/', '')}`);
  return name;
}

/** The fields of the request that one positional argument fills. */
async function argumentOf(input: DescMessage, name: string, value: string | readonly string[], reads: boolean): Promise<object> {
  if (typeof value !== 'string') return { [name]: value };
  const field = camel(name);
  if (field === 'skill' && input.field['name']) {
    const { name: skill, version } = skillReference(value);
    if (version === 0 || input.field['version']) return { name: skill, version };
    return { name: input.field['toVersion'] ? skill : wholeSkill(value), toVersion: version };
  }
  const target = input.field[field];
  if (target?.fieldKind === 'list') return { [field]: [value] };
  if (target) return { [field]: reads ? await readArgument(value) : value };
  return input.field['name'] ? { name: resource(name, value) } : { id: value };
}

function valueOf(field: DescField, value: unknown): unknown {
  if (field.fieldKind === 'enum') return field.enum.values.find(({ localName }) => localName.toLowerCase() === value)?.number;
  return field.fieldKind === 'message' && typeof value === 'number' ? durationFromMs(value) : value;
}

/** The fields of a message that the given flags fill, by field name. */
export async function fieldsOf(input: DescMessage, flags: Flags, options: object): Promise<Record<string, unknown>> {
  const fields: Record<string, unknown> = {};
  for (const [typed, told] of Object.entries(flags)) {
    const flag = typeof told === 'string' ? { help: told } : told;
    const field = fieldOf(input, nameOf(typed), flag);
    const value = (options as Options)[nameOf(typed)];
    if (field && value !== undefined)
      fields[field.localName] = flag.reads && typeof value === 'string' ? await readArgument(value) : valueOf(field, value);
  }
  return fields;
}

async function requestOf(input: DescMessage, command: Command, { help, flags = {} }: Plain<never, never>) {
  const request: Record<string, unknown> = input.field['requestId'] ? { requestId: randomUUID() } : {};
  for (const [index, value] of wordsTyped(command).entries()) {
    const name = command.registeredArguments[index]?.name() ?? '';
    if (value !== undefined) Object.assign(request, await argumentOf(input, name, value, help.includes('@FILE')));
  }
  // If a parent command has the same flag, commander stores the value in the parent's options.
  return Object.assign(request, await fieldsOf(input, { ...REPEAT, ...flags }, command.optsWithGlobals()));
}

type Call = (request: object, settings: ReturnType<typeof callSettings>) => Promise<Record<string, unknown>>;

const listOf = ({ fields }: DescMessage, columns: readonly string[] | undefined) =>
  columns && fields.find((field) => field.fieldKind === 'list' && field.message !== undefined);

async function answerOf(method: DescMethodUnary, given: Given, request: object, { columns, repeat, leastMs }: Plain<never, never>) {
  const { cli, gateway, options } = given;
  const list = listOf(method.output, columns)?.localName;
  const client = gateway[method.parent.name.toLowerCase() as 'tasks'] as unknown as Record<string, Call>;
  const call = (page: object) => client[method.localName]?.({ ...request, ...page }, callSettings(cli, leastMs)) ?? Promise.reject(method);
  if (list !== undefined) {
    const limit = typeof options['limit'] === 'number' ? options['limit'] : Infinity;
    let answer: Record<string, unknown> = {};
    const { items, nextPageToken } = await inPages(limit, async (page) => {
      answer = await call(page);
      return { items: answer[list] as unknown[], nextPageToken: (answer['nextPageToken'] as string | undefined) ?? '' };
    });
    return { ...answer, [list]: items, nextPageToken };
  }
  return repeat || 'requestId' in request ? ridingOut(cli.signal, () => call({})) : call({});
}

function answerJson(output: DescMessage, answer: object): JsonObject {
  const { nextPageToken: _token, ...json } = jsonOf(output, answer as never) as JsonObject;
  return json;
}

function answerText(output: DescMessage, answer: object, { columns = [] }: Plain<never, never>): string {
  const { message, localName = '' } = listOf(output, columns.length > 0 ? columns : undefined) ?? {};
  return message ? tableOf(message, (answer as Record<string, []>)[localName] ?? [], columns) : details(output, answer as never);
}

export function plain<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>, spec: Plain<I, O>): Entry {
  const untyped = spec as unknown as Plain<never, never>;
  const work = async (given: Given, request: object): Promise<number> => {
    const { cli, args } = given;
    cli.out.status(spec.status?.(args) ?? '');
    const first = (await answerOf(method, given, request, untyped)) as MessageShape<O>;
    const answer = (await spec.after?.(first, given)) ?? first;
    cli.out.status('');
    const text = spec.text ? await spec.text(answer, given) : answerText(method.output, answer, untyped);
    cli.out.data(answerJson(method.output, answer), text);
    const { none = spec.columns && `no ${listOf(method.output, spec.columns)?.name ?? ''}` } = spec;
    if (text === '' && none !== undefined) cli.out.note(typeof none === 'string' ? none : none(given));
    for (const note of (await spec.notes?.(answer, given)) ?? []) cli.out.note(note);
    const more = spec.columns && (answer as { readonly nextPageToken?: string }).nextPageToken;
    if (more) cli.out.note(`more results exist; raise --limit (now ${String(given.options['limit'])}) to print them`);
    return spec.exit?.(answer, given) ?? EXIT.ok;
  };
  return (noun, start) => {
    const command = addTo(noun, untyped, spec.fills ?? method.input);
    command.action(() =>
      start(command, async (cli) => {
        const [filled, options] = [await requestOf(method.input, command, untyped), command.opts<Options>()];
        const args = wordsTyped(command).flat() as string[];
        const request = (await spec.ask?.(filled as never, { cli, options, args })) ?? filled;
        return withGateway(cli, (gateway) => work({ cli, gateway, options, args }, request));
      }),
    );
  };
}

export function addNoun(program: Command, start: Start, noun: string, help: string, entries: readonly Entry[]): Command {
  const command = program.command(noun).description(help);
  for (const entry of entries) entry(command, start);
  return command;
}
