import { hash, randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type AddConversationResponse,
  AddConversationResponseSchema,
  Memory,
  type Message,
  MessageSchema,
  type Turn,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { batchesOf } from '@etude/contracts/wire/batches';
import { parsedJson } from '@etude/contracts/json';
import { callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, withGateway } from '../cli.js';
import { CONFIRM, confirmed, type Entry, type Flags, hand, LIMIT, plain, REPEAT } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { decodeUtf8, jsonIn, messageOf, readArgument, readBytes } from '../files.js';
import { plural } from '../output.js';
import { show } from '../show.js';

const BYTES_MAX = 64 * 1024 * 1024;
/** Limits of one call. They keep a call short even though every message is embedded. */
const BATCH = { itemsMax: 200, sizeMax: 4_000_000 };
const BATCH_TIMEOUT_MS = 300_000;
const HINT =
  'a message looks like {"role": "user", "name": "Ann", "text": "…", "time": "2026-05-03T09:00:00Z"}; name and time may be left out';

interface AddOptions {
  readonly agent: string;
  readonly user?: string;
  readonly name?: string;
  readonly id?: string;
  readonly title?: string;
  readonly requestId?: string;
}

/** Reads a JSON list of messages, an object with a list `messages`, or one message per line. `content` is read as `text`. @throws CliError */
export function messagesIn(text: string, where: string): Message[] {
  const isLines = text.trimStart().startsWith('{') && parsedJson(text) === undefined;
  const lines = text.split('\n').flatMap((line, n) => (line.trim() === '' ? [] : [{ line, at: `${where}, line ${n + 1}` }]));
  const told = isLines ? lines.map(({ line, at }) => ({ json: jsonIn(line, at), at })) : listed(jsonIn(text, where), where);
  if (told.length === 0) throw new CliError(EXIT.usage, `${where} holds no message`, [HINT]);
  return told.map(({ json, at }) => messageOf(MessageSchema, withText(json), at, [HINT]));
}

function listed(json: unknown, where: string): ReadonlyArray<{ readonly json: unknown; readonly at: string }> {
  const { messages = json } = (json ?? {}) as { messages?: unknown };
  const list = Array.isArray(messages) ? messages : [messages];
  return list.map((one: unknown, n) => ({ json: one, at: `${where}, message ${n + 1}` }));
}

function withText(json: unknown): unknown {
  if (typeof json !== 'object' || json === null || !('content' in json) || 'text' in json) return json;
  const { content, ...message } = json;
  return { ...message, text: content };
}

/** The conversation of a file is named by the file's path, so that adding the file again adds only new messages. */
async function addConversation(cli: Cli, options: AddOptions, [path = '']: readonly string[]): Promise<number> {
  const text = path === '-' ? await readArgument(path) : decodeUtf8(readBytes(path, BYTES_MAX), path);
  const messages = messagesIn(text, path === '-' ? 'stdin' : path);
  const { agent, user = '', title = '', id = '', name = path === '-' || id !== '' ? '' : path } = options;
  const inPlace = path !== '-' && id === '';
  const request = options.requestId ?? (path === '-' ? randomUUID() : hash('sha256', JSON.stringify([agent, user, id, text])).slice(0, 32));
  return withGateway(cli, async (gateway) => {
    let done = 0;
    let whole: AddConversationResponse | null = null;
    await sayingHowToGoOn(cli, async () => {
      for await (const batch of batchesOf(messages, BATCH, ({ text: said }) => said.length)) {
        const where = whole?.conversation ? { id: whole.conversation.id } : { id, name };
        const place = inPlace ? { first: done } : { requestId: `${request}.${done}` };
        const asked = { agent, user, title, messages: batch, ...where, ...place };
        const answer = await ridingOut(cli.signal, () => gateway.memory.addConversation(asked, callSettings(cli, BATCH_TIMEOUT_MS)));
        if (whole === null) whole = answer;
        else whole = { ...answer, first: whole.first, outcome: whole.outcome === 'unchanged' ? answer.outcome : whole.outcome };
        done += batch.length;
        cli.out.status(`added ${done} of ${plural(messages.length, 'message')}`);
      }
    });
    const { conversation, outcome } = whole!;
    const line = `${conversation?.id ?? ''}  ${outcome}  ${plural(messages.length, 'message')}, ${plural(conversation?.turns ?? 0, 'turn')} in all`;
    show(cli.out, AddConversationResponseSchema, whole!, line);
    return EXIT.ok;
  });
}

function lineOf({ index, role, name, time, text }: Turn): string {
  const when = time === undefined ? '' : ` (${timestampDate(time).toISOString()})`;
  return `${index}  ${name === '' ? role : name}${when}: ${text}`;
}

export const addEntry = (owner: Flags): Entry =>
  hand<AddOptions>({
    command: 'add <file>',
    help: 'add the messages of a JSON or JSON Lines file to a conversation; - reads stdin. A repeat adds only new messages',
    flags: {
      ...owner,
      '--name <name>': 'name of a known or a new conversation (default: the path of the file)',
      '--id <conversation>': 'append to the conversation with this id',
      '--title <title>': 'title of the conversation',
      ...REPEAT,
    },
    run: addConversation,
  });

export const CONVERSATIONS = (whose: Flags): readonly Entry[] => [
  plain(Memory.method.listConversations, {
    command: 'list',
    help: 'list conversations with their numbers of turns',
    flags: { ...whose, ...LIMIT(100) },
    columns: ['id', 'turns', 'update_time', 'name', 'title'],
  }),
  plain(Memory.method.listTurns, {
    command: 'show <conversation>',
    help: 'show the messages of a conversation, in order',
    flags: LIMIT(1_000),
    columns: ['index', 'text'],
    text: ({ turns }) => turns.map(lineOf).join('\n'),
  }),
  plain(Memory.method.deleteConversation, {
    command: 'delete <conversation>',
    help: 'delete a conversation with all its turns',
    flags: CONFIRM,
    ask: confirmed,
    text: (_answer, { args: [id = ''] }) => `${id} is deleted`,
  }),
];
