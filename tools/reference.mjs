// Writes docs/reference/: commands, settings and error codes, from the built code and its comments.
// `node tools/reference.mjs [DIR]`, after a build.
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ERROR_KINDS } from '../libs/contracts/dist/errors.js';

const root = new URL('..', import.meta.url).pathname;
const folder = process.argv[2] ?? join(root, 'docs/reference');
const generated = (source) => `<!-- Generated from ${source} by tools/reference.mjs; don't edit. -->`;
const code = (text) => `\`${text}\``;

/** Comments of object properties and constants, by name. */
function commentsIn(text, name) {
  const comments = new Map();
  for (const [, comment, property] of text.matchAll(new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n\\s*(${name}):`, 'g')))
    comments.set(property, comment.replaceAll(/\n\s*\* ?/g, ' ').trim());
  return comments;
}

/** Replaces the explanation of `@FILE` and `-` by a star. The top of the page explains the star. */
const starred = (text) => text.replace(/;? ?@FILE reads a file, - reads stdin/, '*').replace(/^\*/, 'text*');

function meaningOf(option) {
  const choices = option.argChoices === undefined ? [] : [option.argChoices.join('|')];
  const usual =
    option.defaultValue === undefined ? [] : [`default: ${option.defaultValueDescription ?? [option.defaultValue].flat().join(' ')}`];
  return starred([option.description, ...choices, ...usual, ...(option.mandatory ? ['required'] : [])].join('; '));
}

const line = (name, meaning) => `${name}  ${meaning}`;
const flagLines = (options) => options.map((option) => withDefault(option.flags, meaningOf(option)));

/** A flag with its default after `=`, if the default is one word. */
function withDefault(flags, meaning) {
  const usual = /(?:^|;? )\(?default: (?!all\b|none\b|-)([^\s();]+)\)?$/.exec(meaning);
  return usual === null || !flags.endsWith('>')
    ? line(flags, meaning).trim()
    : line(`${flags}=${usual[1]}`, meaning.slice(0, usual.index)).trim();
}
const block = (lines) => ['```text', ...lines, '```'].join('\n');
/** Flags with the same meaning in all commands. */
const EVERYWHERE = new Set(['--request-id <id>', '--limit <n>', '--dry-run', '--detach']);

/** Commands of one noun, with their names after the noun. */
function commandsOf(noun, path = []) {
  if (noun.commands.length === 0) return [[path, noun]];
  return noun.commands.flatMap((command) => commandsOf(command, [...path, command.name()]));
}

/** The words of a command after its noun. */
function typed([path, command]) {
  const words = command.registeredArguments.map((one) => {
    const word = `${one.name().toUpperCase()}${one.variadic ? '...' : ''}`;
    return one.required ? word : `[${word}]`;
  });
  return [...path, ...words].join(' ');
}

/** Lists a flag with one meaning once, below the names of all commands that take it. */
function flagsOf(commands) {
  const users = new Map();
  for (const [path, command] of commands)
    for (const flag of flagLines(command.options.filter(({ flags }) => !EVERYWHERE.has(flags))))
      users.set(flag, [...(users.get(flag) ?? []), path.join(' ')]);
  const groups = Map.groupBy(users, ([, names]) => names.join(', '));
  return [...groups].flatMap(([names, flags]) => ['', `${names}:`, ...flags.map(([flag]) => `  ${flag}`)]);
}

function nounSection(noun) {
  const commands = commandsOf(noun);
  if (noun.commands.length === 0) {
    const heading = ['## etude', noun.name(), typed(commands[0])].join(' ').trim();
    return [heading, `${noun.description()}.`, ...(noun.options.length > 0 ? [block(flagLines(noun.options))] : [])];
  }
  const lines = commands.map((one) => line(typed(one), starred(one[1].description())));
  const own = noun.options.length > 0 ? [...flagLines(noun.options), ''] : [];
  return [`## etude ${noun.name()}`, `${noun.description()}.`, block([...own, ...lines, ...flagsOf(commands)])];
}

async function cliPage() {
  const { buildProgram } = await import('../apps/cli/dist/program.js');
  const program = buildProgram(async () => undefined);
  return [
    '# Commands',
    generated('apps/cli'),
    'Where a text has a star, `@FILE` reads a file and `-` reads stdin. `=` is followed by the default. With `--request-id ID`, a repeated request changes nothing; `--limit N` bounds a list; `--dry-run` shows the changes without making them; `--detach` does not wait for the end. Every command takes these flags, before or behind its name:',
    block(flagLines(program.options)),
    ...program.commands.filter((noun) => noun.name() !== 'complete').flatMap(nounSection),
  ];
}

/** The schemas that services parse their environment with. */
const SERVICES = {
  gateway: ['apps/gateway/dist/config/gateway-config.js', 'gatewayConfig'],
  'rollout worker': ['apps/rollout-worker/dist/rollout-worker.js', 'rolloutWorkerConfig'],
  'sandbox controller': ['apps/sandbox-controller/dist/sandbox-controller.config.js', 'sandboxControllerConfig'],
  'consolidation worker': ['apps/consolidation-worker/dist/consolidation-worker.config.js', 'consolidationWorkerConfig'],
  'command line': ['apps/cli/dist/cli.js', 'Environment'],
};

const readersOf = (services) => (services.length === 4 && !services.includes('command line') ? 'all services' : services.join(', '));

async function settingsPage() {
  const sources = globSync(['apps/*/src/**/*.ts', 'libs/*/src/**/*.ts'], { cwd: root }).toSorted();
  const comments = new Map(sources.flatMap((path) => [...commentsIn(readFileSync(join(root, path), 'utf8'), '(?:ETUDE|OPENAI)_[A-Z_]+')]));
  const settings = new Map();
  for (const [service, [path, name]] of Object.entries(SERVICES)) {
    const schema = (await import(join(root, path)))[name];
    const { properties, required = [] } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
    for (const [setting, { default: usual, enum: words }] of Object.entries(properties)) {
      const known = settings.get(setting) ?? { services: [], usual: '', words };
      const value = usual === undefined ? (required.includes(setting) ? '=… (required)' : '') : `=${usual}`;
      settings.set(setting, { ...known, services: [...known.services, service], usual: known.usual || value });
    }
  }
  const groups = Map.groupBy(
    [...settings].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ([, { services }]) => readersOf(services),
  );
  return [
    '# Settings',
    generated('the configuration schemas of the services'),
    'Settings are environment variables. A service that finds a wrong value names it and does not start. `=` is followed by the default; a setting without `=` is unset. Headings say who reads them.',
    ...[...groups]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([names, rows]) => [
        `## ${names[0].toUpperCase()}${names.slice(1)}`,
        rows
          .map(([name, { usual, words }]) => {
            const meaning = comments.get(name);
            if (!meaning) throw new Error(`${name} has no comment in its schema; say what it means`);
            return `- ${code(`${name}${usual}`)}: ${meaning}${words ? ` One of: ${words.map(code).join(', ')}.` : ''}`;
          })
          .join('\n'),
      ]),
  ];
}

const STATUS = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS', 'PERMISSION_DENIED'];
STATUS.push('RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE');
STATUS.push('DATA_LOSS', 'UNAUTHENTICATED');

function errorsPage() {
  const source = 'libs/contracts/src/errors.ts';
  const comments = commentsIn(readFileSync(join(root, source), 'utf8'), '[A-Z_]+');
  const lines = Object.entries(ERROR_KINDS).map(([name, { grpc, retryable, fault }]) => {
    const status = STATUS[grpc] === name ? [] : [STATUS[grpc]];
    return `- ${code(name)} (${[...status, fault, ...(retryable ? ['retry'] : [])].join(', ')}): ${comments.get(name) ?? ''}`;
  });
  return [
    '# Error codes',
    generated(source),
    'In parentheses: the gRPC status if its name differs, whose fault it is, and `retry` if the same call may succeed later.',
    lines.join('\n'),
  ];
}

mkdirSync(folder, { recursive: true });
for (const [name, page] of Object.entries({ cli: await cliPage(), settings: await settingsPage(), errors: errorsPage() }))
  writeFileSync(join(folder, `${name}.md`), `${page.join('\n\n')}\n`);
