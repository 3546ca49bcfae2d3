import {
  FactDecisionSchema,
  type ListFactHistoryResponse,
  Memory,
  type MemoryHit,
  MemoryHitSchema,
  type MemoryRecord,
  MemoryRecordSchema,
  StoreEpisodeRequestSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { addNoun, CONFIRM, confirmed, type Entry, type Flags, hand, LIMIT, plain } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { jsonIn, messageOf, readArgument } from '../files.js';
import { integer, repeated } from '../options.js';
import { firstLine, table } from '../output.js';
import { details, list, when } from '../show.js';
import { addEntry, CONVERSATIONS } from './conversations.js';
import { exportMemory, importDocuments, importMemory, type ImportOptions, isExport } from './transfer-memory.js';
import { EXACTLY, exitOf, untilErased, UPKEEP } from './upkeep.js';

const WHOSE: Flags = {
  '--agent <name>': "only this agent's records",
  '--user <name>': "only this user's records and those without a user",
};
const OWNER: Flags = {
  '--agent <name>': { help: 'agent that owns the record', usual: 'default' },
  '--user <name>': 'user that owns it',
};
const PARTIAL: Flags = { '--partial': 'answer even if some layers cannot be searched' };
const LAYER: Flags = { '--layer <layer>': { help: 'episodic|semantic|procedural; repeatable (default: all)', parse: repeated } };
const ONE: Flags = {
  ...WHOSE,
  '--layer <layer>': { help: 'layer that holds the record', choices: ['episodic', 'semantic', 'procedural'], usual: 'semantic' },
};
const SEARCH: Flags = {
  ...WHOSE,
  ...LAYER,
  '--kind <kind>': 'transition|episode|fact|summary|reflection|chunk|turn|skill; repeatable (default: all)',
  '--limit <n>': { help: 'most results per layer', usual: 5, parse: integer(1, 100) },
  '--importance-min <x>': 'minimum importance of episodes (default: 0.3 if only episodes are searched)',
  '--success-rate-min <x>': 'minimum success rate of skills (default: 0.6 if only skills are searched)',
  '--similarity-min <x>': 'minimum similarity; 0.7 means "probably the same task", 0 keeps unrelated records (default: relevant records)',
  '--category <name>': 'only facts and skills of this category',
  '--archived': 'include archived records',
  '--rerank': 'let the model order the best results',
  ...PARTIAL,
};

const missing = ({ missingLayers }: { readonly missingLayers: readonly string[] }) =>
  missingLayers.length > 0 ? [`the results lack layers that could not be searched: ${missingLayers.join(', ')}`] : [];

function below<Desc extends DescMessage>(title: string, type: Desc, messages: ReadonlyArray<MessageShape<Desc>>): string {
  const texts = messages.map((message) => `${details(type, message)}\n`);
  return list(title, texts);
}

const grouped = (hits: readonly MemoryHit[], by: 'layer' | 'kind') =>
  [...Map.groupBy(hits, (hit) => hit[by])].map(([heading, of]) => below(heading, MemoryHitSchema, of));

const search = (command: string, help: string, explain: boolean): Entry =>
  plain(Memory.method.searchMemory, {
    command,
    help,
    flags: SEARCH,
    ask: (request) => ({ ...request, explain }),
    text: ({ hits }) => grouped(hits, 'layer').join('\n'),
    none: 'nothing found; --importance-min 0 and --success-rate-min 0 include unimportant episodes and unproven skills',
    notes: missing,
  });

const recordsText = (records: readonly MemoryRecord[]) => records.map((record) => details(MemoryRecordSchema, record)).join('\n\n');

const historyText = ({ facts, decisions }: ListFactHistoryResponse) =>
  [recordsText(facts), below('decisions', FactDecisionSchema, decisions)].filter(Boolean).join('\n\n');

const READING: readonly Entry[] = [
  search('search <query>', 'search by meaning and by words', false),
  search('explain <query>', 'search, and explain how each score was computed', true),
  plain(Memory.method.recall, {
    command: 'recall <context>',
    help: 'recall records that help in a context, within a token budget',
    flags: {
      ...WHOSE,
      '--facts <n>': 'most facts (default: 5)',
      '--experiences <n>': 'most experiences (default: 3)',
      '--procedures <n>': 'most procedures (default: 3)',
      '--tokens <n>': { help: 'most tokens of all texts together', field: 'tokensMax', usual: 800, parse: integer(1, 100_000) },
      ...PARTIAL,
    },
    text: ({ facts, ...others }) => {
      const rest = (['experiences', 'procedures'] as const).map((name) => below(name, MemoryHitSchema, others[name]));
      return [...grouped(facts, 'kind'), ...rest].filter(Boolean).join('\n');
    },
    none: 'nothing recalled within --tokens',
    notes: missing,
  }),
  plain(Memory.method.getMemory, { command: 'get <id>', help: 'show a whole record', flags: ONE }),
  plain(Memory.method.listMemory, {
    command: 'list',
    help: 'list records, newest first',
    flags: {
      ...WHOSE,
      '--kind <kind>': {
        help: 'fact|episode|skill|document|conversation|transition|summary|reflection|chunk|turn',
        usual: 'fact',
      },
      '--category <name>': 'only facts and skills of this category',
      '--all': 'include archived, replaced and inactive records',
      ...LIMIT(100),
    },
    columns: ['id'],
    text: ({ records }) => (records.length === 0 ? '' : table(records.map(recordLine))),
  }),
  plain(Memory.method.listRecentEpisodes, {
    command: 'recent',
    help: 'list episodes, newest first',
    flags: {
      ...WHOSE,
      '--days <n>': 'days to look back (default: 7; with --skill: all)',
      '--limit <n>': { help: 'most episodes (default: 10; with --skill: 5)', parse: integer(1, 1_000) },
      '--skill <name>': 'only episodes that used this skill',
    },
    text: ({ episodes }) => recordsText(episodes),
    none: 'no episodes',
  }),
  plain(Memory.method.listFactHistory, {
    command: 'history <fact>',
    help: 'list a fact, the facts it replaced, newest first, and the decisions about them',
    text: historyText,
  }),
  plain(Memory.method.getMemoryStats, { command: 'stats', help: 'count the records, and name the database and the embedding model' }),
];

/** Fields that describe a record best. */
const TELLING = ['fact', 'prompt', 'summary', 'text', 'title', 'description'];

function recordLine({ id, agent, user, createTime, fields }: MemoryRecord): string[] {
  const told = TELLING.map((name) => fields?.[name]).find((value) => typeof value === 'string');
  return [id, when(createTime), user === '' ? agent : `${agent}/${user}`, firstLine(told ?? '')];
}

const EPISODE =
  'an episode looks like {"context": ["…"], "actions": ["…"], "outcomes": [{"type": "…"}], "reflection": "…", "importance": 0.5}';

const STORING: readonly Entry[] = [
  plain(Memory.method.storeFact, {
    command: 'fact <text>',
    help: 'store one statement; @FILE reads a file, - reads stdin',
    flags: {
      ...OWNER,
      '--category <name>': 'default: general',
      '--confidence <x>': 'default: 1',
      '--source <name>': 'default: told',
      '--subject <name>': 'subject; a newer fact replaces older facts of the same subject (default: read from the text)',
    },
    text: ({ fact, outcome, replaced }) => [fact?.id ?? '', outcome, ...replaced].join('  '),
  }),
  plain(Memory.method.storeEpisode, {
    command: 'episode <json>',
    help: 'store an episode, as JSON; @FILE reads a file, - reads stdin',
    flags: OWNER,
    ask: async ({ agent = '', user = '', requestId = '' }, { args: [json = ''] }) => {
      const given = jsonIn(await readArgument(json), 'the episode');
      const episode = messageOf(StoreEpisodeRequestSchema, given, 'the episode', [EPISODE]);
      return { ...episode, agent, user, requestId };
    },
    text: ({ id }) => `${id}  stored`,
  }),
  plain(Memory.method.storeProcedure, {
    command: 'procedure <name> <prompt>',
    help: 'store a procedure as text; @FILE reads a file, - reads stdin',
    flags: OWNER,
    text: ({ id, fields }) => `${id}  stored, and ${JSON.stringify(fields?.['status'] ?? 'active')}`,
  }),
];

const UPDATE = plain(Memory.method.updateFact, {
  command: 'update <fact>',
  help: 'change the text of a fact, its confidence, or both',
  flags: { '--text <text>': 'the new text', '--confidence <x>': 'the new confidence' },
  ask: (request, { options }) => {
    const paths = ['text', 'confidence'].filter((field) => options[field] !== undefined);
    if (paths.length === 0) throw new CliError(EXIT.usage, 'nothing to change; pass --text, --confidence, or both');
    return { ...request, updateMask: { paths } };
  },
});

const UNDO = plain(Memory.method.undoFactDecision, {
  command: 'undo <id> <other>',
  help: 'undo the last decision about two facts, which "history" shows',
  text: historyText,
});

const DELETE = plain(Memory.method.deleteMemory, {
  command: 'delete <id>',
  help: 'erase a record with its parts, for good',
  flags: { ...ONE, ...CONFIRM, '--detach': 'do not wait for the end' },
  ask: confirmed,
  after: untilErased,
  exit: exitOf,
});

const DOCUMENTS: readonly Entry[] = [
  plain(Memory.method.listDocuments, {
    command: 'list',
    help: 'list documents with their titles and numbers of chunks',
    flags: { ...WHOSE, ...LIMIT(100) },
    columns: ['id', 'chunks', 'bytes', 'name', 'title'],
  }),
  plain(Memory.method.deleteDocument, {
    command: 'delete <document>',
    help: 'delete a document and its chunks',
    flags: CONFIRM,
    ask: confirmed,
    text: (_answer, { args: [id = ''] }) => `${id} is deleted`,
  }),
];

const TRANSFER: readonly Entry[] = [
  hand<ImportOptions>({
    command: 'import <path...>',
    help: 'import Markdown, text, HTML or PDF files, folders of them, or an export (.jsonl)',
    flags: {
      ...OWNER,
      '--media-type <type>': 'media type, such as text/markdown, if the name has no known extension',
      '--name <name>': 'name of the document (default: its path)',
    },
    run: (cli, options, paths) => (isExport(paths) ? importMemory(cli, paths[0] ?? '') : importDocuments(cli, paths, options)),
  }),
  hand({
    command: 'export',
    help: 'export all records without loss, as JSON Lines',
    flags: { ...EXACTLY, ...LAYER, '-o, --output <file>': { help: 'file to write; - is stdout', usual: '-' } },
    run: exportMemory,
  }),
];

export function addMemory(program: Command, start: Start): void {
  const memory = addNoun(program, start, 'memory', 'search, store and maintain memory', READING);
  addNoun(memory, start, 'store', 'store a record; the next search finds it', STORING);
  for (const entry of [UPDATE, UNDO, DELETE, ...TRANSFER]) entry(memory, start);
  addEntry(OWNER)(memory, start);
  addNoun(memory, start, 'documents', 'imported documents', DOCUMENTS);
  addNoun(memory, start, 'conversations', 'conversations and their messages', CONVERSATIONS(WHOSE));
  for (const entry of UPKEEP) entry(memory, start);
}
