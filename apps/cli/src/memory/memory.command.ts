import {
  Memory,
  type MemoryHit,
  MemoryHitSchema,
  type MemoryRecord,
  MemoryRecordSchema,
  StoreEpisodeRequestSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { addNoun, type Entry, type Flags, hand, LIMIT, plain } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { jsonIn, messageOf, readArgument } from '../files.js';
import { integer, repeated } from '../options.js';
import { details, list } from '../show.js';
import { importDocuments, type ImportOptions } from './documents.js';
import { exportMemory, importMemory, isExport } from './transfer-memory.js';
import { EXACTLY, UPKEEP } from './upkeep.js';

const WHOSE: Flags = {
  '--agent <name>': "only this agent's (default: all)",
  '--user <name>': "only this user's, and what is nobody's (default: all)",
};
const OWNER: Flags = {
  '--agent <name>': { help: 'whose it is', usual: 'default' },
  '--user <name>': "the user it belongs to (default: nobody's)",
};
const PARTIAL: Flags = { '--partial': 'answer without layers that cannot be searched' };
const LAYER: Flags = { '--layer <layer>': { help: 'episodic, semantic or procedural; repeatable (default: all)', parse: repeated } };
const SEARCH: Flags = {
  ...WHOSE,
  ...LAYER,
  '--kind <kind>': 'transition, episode, fact, summary, reflection, chunk or skill; repeatable (default: all)',
  '--limit <n>': { help: 'per layer', usual: 5, parse: integer(1, 100) },
  '--importance-min <x>': 'of episodes (default: 0.3 for episodes alone)',
  '--success-rate-min <x>': 'of skills (default: 0.6 for skills alone)',
  '--similarity-min <x>': '0.7 is "probably the same task"',
  '--category <name>': 'of facts',
  '--archived': 'also what was archived',
  '--rerank': 'have the model order the best ones',
  ...PARTIAL,
};

const missing = ({ missingLayers }: { readonly missingLayers: readonly string[] }) =>
  missingLayers.length > 0 ? [`could not be searched now, and are missing: ${missingLayers.join(', ')}`] : [];

const hitsBelow = (title: string, hits: readonly MemoryHit[]) =>
  list(
    title,
    hits.map((hit) => `${details(MemoryHitSchema, hit)}\n`),
  );

/** Hits below a heading for each layer or kind. */
const grouped = (hits: readonly MemoryHit[], by: 'layer' | 'kind') =>
  [...Map.groupBy(hits, (hit) => hit[by])].map(([heading, of]) => hitsBelow(heading, of));

const search = (command: string, help: string, explain: boolean): Entry =>
  plain(Memory.method.searchMemory, {
    command,
    help,
    flags: SEARCH,
    ask: (request) => ({ ...request, explain }),
    text: ({ hits }) => grouped(hits, 'layer').join('\n'),
    none: 'nothing found; --importance-min 0 and --success-rate-min 0 show what matters little and what has not proved itself yet',
    notes: missing,
  });

const recordsText = (records: readonly MemoryRecord[]) => records.map((record) => details(MemoryRecordSchema, record)).join('\n\n');

const READING: readonly Entry[] = [
  search('search <query>', 'what is near the query, by meaning and by words', false),
  search('explain <query>', 'the same, saying how each score came about', true),
  plain(Memory.method.recall, {
    command: 'recall <context>',
    help: 'what helps in a context, within a budget of tokens',
    flags: {
      ...WHOSE,
      '--facts <n>': 'at most (default: 5)',
      '--experiences <n>': 'at most (default: 3)',
      '--procedures <n>': 'at most (default: 3)',
      '--tokens <n>': { help: 'of all texts together', field: 'tokensMax', usual: 2_000, parse: integer(1, 100_000) },
      ...PARTIAL,
    },
    text: ({ facts, experiences, procedures }) =>
      [...grouped(facts, 'kind'), hitsBelow('experiences', experiences), hitsBelow('procedures', procedures)].filter(Boolean).join('\n'),
    none: 'nothing recalled within --tokens',
    notes: missing,
  }),
  plain(Memory.method.getMemory, {
    command: 'get <id>',
    help: 'a record, whole',
    flags: { ...WHOSE, '--layer <layer>': { help: 'where it is', choices: ['episodic', 'semantic', 'procedural'], usual: 'semantic' } },
  }),
  plain(Memory.method.listRecentEpisodes, {
    command: 'recent',
    help: 'episodes, newest first',
    flags: {
      ...WHOSE,
      '--days <n>': 'how far back (default: 7; with --skill: all)',
      '--limit <n>': { help: 'how many (default: 10; with --skill: 5)', parse: integer(1, 1_000) },
      '--skill <name>': 'only those in which it was used',
    },
    text: ({ episodes }) => recordsText(episodes),
    none: 'no episodes',
  }),
  plain(Memory.method.listFactHistory, {
    command: 'history <fact>',
    help: 'a fact and the facts that it replaced, newest first',
    text: ({ facts }) => recordsText(facts),
  }),
  plain(Memory.method.getMemoryStats, { command: 'stats', help: 'how much there is, in which database, with which vectors' }),
];

const EPISODE = 'it looks like {"context": ["…"], "actions": ["…"], "outcomes": [{"type": "…"}], "reflection": "…", "importance": 0.5}';

const STORING: readonly Entry[] = [
  plain(Memory.method.storeFact, {
    command: 'fact <text>',
    help: 'one statement; @FILE reads a file, - reads stdin',
    flags: {
      ...OWNER,
      '--category <name>': 'default: general',
      '--confidence <x>': 'default: 1',
      '--source <name>': 'default: told',
      '--subject <name>': 'of facts with one subject only the newest is true (default: told from the text)',
    },
    text: ({ fact, outcome, replaced }) => [fact?.id ?? '', outcome, ...replaced].join('  '),
  }),
  plain(Memory.method.storeEpisode, {
    command: 'episode <json>',
    help: 'what an agent lived through, as JSON; @FILE reads a file, - reads stdin',
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
    help: 'how to do something, in words; @FILE reads a file, - reads stdin',
    flags: OWNER,
    text: ({ id, fields }) => `${id}  stored, and ${JSON.stringify(fields?.['status'] ?? 'active')}`,
  }),
];

const UPDATE = plain(Memory.method.updateFact, {
  command: 'update <fact>',
  help: 'change the text of a fact, its confidence, or both',
  flags: { '--text <text>': 'in its place', '--confidence <x>': 'in its place' },
  ask: (request, { options }) => {
    const paths = ['text', 'confidence'].filter((field) => options[field] !== undefined);
    if (paths.length === 0) throw new CliError(EXIT.usage, 'say what to change: --text, --confidence, or both');
    return { ...request, updateMask: { paths } };
  },
});

const DOCUMENTS: readonly Entry[] = [
  plain(Memory.method.listDocuments, {
    command: 'list',
    help: 'names, titles and numbers of chunks',
    flags: { ...WHOSE, ...LIMIT(100) },
    columns: ['id', 'chunks', 'bytes', 'name', 'title'],
  }),
  plain(Memory.method.deleteDocument, {
    command: 'delete <document>',
    help: 'with its chunks',
    text: (_answer, { args: [id = ''] }) => `${id} is deleted`,
  }),
];

const TRANSFER: readonly Entry[] = [
  hand<ImportOptions>({
    command: 'import <path...>',
    help: 'Markdown, text, HTML, PDF, folders of them, or an export (.jsonl)',
    flags: {
      '--agent <name>': { help: 'whose the documents are', usual: 'default' },
      '--user <name>': "the user they belong to (default: nobody's)",
      '--media-type <type>': 'where the name does not say it, such as text/markdown',
      '--name <name>': 'what the document is called (default: its path)',
    },
    run: (cli, options, paths) => (isExport(paths) ? importMemory(cli, paths[0] ?? '') : importDocuments(cli, paths, options)),
  }),
  hand({
    command: 'export',
    help: 'everything, lossless, as JSON Lines',
    flags: { ...EXACTLY, ...LAYER, '-o, --output <file>': { help: 'file to write; - is stdout', usual: '-' } },
    run: exportMemory,
  }),
];

export function addMemory(program: Command, start: Start): void {
  const memory = addNoun(program, start, 'memory', 'what is remembered', READING);
  addNoun(memory, start, 'store', 'tell something; it is known to the next search', STORING);
  for (const entry of [UPDATE, ...TRANSFER]) entry(memory, start);
  addNoun(memory, start, 'documents', 'what was imported', DOCUMENTS);
  for (const entry of UPKEEP) entry(memory, start);
}
