import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Start } from '../cli.js';
import { integer, repeated } from '../options.js';
import { addCalibrate } from './calibrate.js';
import { deleteDocument, importDocuments, type ImportOptions, listDocuments } from './import-documents.js';
import { reembed, type ReembedOptions } from './reembed.js';
import {
  getMemory,
  type GetOptions,
  MEMORY_LAYERS,
  recall,
  type RecallOptions,
  searchMemory,
  type SearchOptions,
  TOKENS_USUAL,
  type WhoseOptions,
} from './search-memory.js';
import {
  factHistory,
  type FactOptions,
  type OwnerOptions,
  recentEpisodes,
  type RecentOptions,
  storeEpisode,
  storeFact,
  storeProcedure,
  updateFact,
  type UpdateOptions,
} from './store-memory.js';
import { exportMemory, type ExportOptions, importMemory, isExport } from './transfer-memory.js';
import {
  archiveMemory,
  type ArchiveOptions,
  eraseMemory,
  type EraseOptions,
  memoryStats,
  reconcileMemory,
  restoreMemory,
  showErasure,
} from './upkeep-memory.js';

const DEFAULT_AGENT = 'default';

function fraction(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) throw new InvalidArgumentError('must be a number from 0 to 1');
  return value;
}

const whose = (command: Command) =>
  command
    .option('--agent <name>', "only this agent's (default: all)")
    .option('--user <name>', "only this user's, and what is nobody's (default: all)");

const owner = (command: Command) =>
  command
    .option('--agent <name>', 'whose it is', DEFAULT_AGENT)
    .option('--user <name>', "the user it belongs to (default: nobody's)")
    .option('--request-id <id>', 'makes a repeat harmless');

const exactly = (command: Command) =>
  command.option('--agent <name>', "exactly this agent's (default: all)").option('--user <name>', "exactly this user's (default: all)");

const search = (command: Command) =>
  whose(command)
    .option('--layer <layer>', 'episodic, semantic or procedural; repeatable (default: all)', repeated)
    .option('--kind <kind>', 'transition, episode, fact, summary, reflection, chunk or skill; repeatable (default: all)', repeated)
    .option('--limit <n>', 'per layer', integer(1, 100), 5)
    .option('--importance-min <x>', 'of episodes (default: 0.3 where only episodes are searched)', fraction)
    .option('--success-rate-min <x>', 'of skills and procedures (default: 0.6 where only they are searched)', fraction)
    .option('--similarity-min <x>', '0.7 is "probably the same task"', fraction)
    .option('--category <name>', 'of facts')
    .option('--archived', 'also what was archived')
    .option('--rerank', 'have the model order the best ones')
    .option('--partial', 'where a layer cannot be searched, answer with the others');

function addReading(memory: Command, start: Start): void {
  search(memory.command('search <query>'))
    .description('what is near the query, by meaning and by words')
    .option('--explain', 'say how each score came about')
    .action((query: string, options: SearchOptions, command: Command) => start(command, (cli) => searchMemory(cli, query, options)));
  search(memory.command('explain <query>'))
    .description('the same, saying how each score came about')
    .action((query: string, options: SearchOptions, command: Command) =>
      start(command, (cli) => searchMemory(cli, query, { ...options, explain: true })),
    );
  whose(memory.command('recall <context>'))
    .description('facts, experiences and procedures for a context, within a budget of tokens')
    .option('--facts <n>', 'at most (default: 5)', integer(0, 100))
    .option('--experiences <n>', 'at most (default: 3)', integer(0, 100))
    .option('--procedures <n>', 'at most (default: 3)', integer(0, 100))
    .option('--tokens <n>', 'of all texts together', integer(1, 100_000), TOKENS_USUAL)
    .option('--partial', 'where a layer cannot be searched, answer with the others')
    .action((context: string, options: RecallOptions, command: Command) => start(command, (cli) => recall(cli, context, options)));
  whose(memory.command('get <id>'))
    .description("a record, whole; a user's skill with --user, or the key of a reviewer")
    .addOption(new Option('--layer <layer>', 'where it is (default: looks in each)').choices([...MEMORY_LAYERS]))
    .action((id: string, options: GetOptions, command: Command) => start(command, (cli) => getMemory(cli, id, options)));
  whose(memory.command('recent'))
    .description('episodes, newest first')
    .option('--days <n>', 'how far back (default: 7; with --skill: all)', integer(1, 36_500))
    .option('--limit <n>', 'how many (default: 10; with --skill: 5)', integer(1, 1_000))
    .option('--skill <name>', 'only those in which it was used')
    .action((options: RecentOptions, command: Command) => start(command, (cli) => recentEpisodes(cli, options)));
  memory
    .command('history <fact>')
    .description('a fact and those that it took the place of, newest first')
    .action((id: string, _options: object, command: Command) => start(command, (cli) => factHistory(cli, id)));
  memory
    .command('stats')
    .description('how much there is, in which database, with which vectors')
    .action((_options: object, command: Command) => start(command, memoryStats));
}

function addWriting(memory: Command, start: Start): void {
  const store = memory.command('store').description('tell something; it is known to the next search');
  owner(store.command('fact <text>'))
    .description('one statement; @FILE reads a file, - reads stdin')
    .option('--category <name>', 'default: general')
    .option('--confidence <x>', 'default: 1', fraction)
    .option('--source <name>', 'default: told')
    .option('--subject <name>', 'what it is about: of facts with one subject only the newest is true (default: told from the text)')
    .action((text: string, options: FactOptions, command: Command) => start(command, (cli) => storeFact(cli, text, options)));
  owner(store.command('episode <json>'))
    .description('what an agent lived through, as JSON; @FILE reads a file, - reads stdin')
    .action((json: string, options: OwnerOptions, command: Command) => start(command, (cli) => storeEpisode(cli, json, options)));
  owner(store.command('procedure <name> <prompt>'))
    .description('how to do something, in words; @FILE reads a file, - reads stdin')
    .action((name: string, prompt: string, options: OwnerOptions, command: Command) =>
      start(command, (cli) => storeProcedure(cli, name, prompt, options)),
    );
  memory
    .command('update <fact>')
    .description('change the text of a fact, its confidence, or both')
    .option('--text <text>', 'in its place')
    .option('--confidence <x>', 'in its place', fraction)
    .action((id: string, options: UpdateOptions, command: Command) => start(command, (cli) => updateFact(cli, id, options)));
}

function addTransfer(memory: Command, start: Start): void {
  memory
    .command('import <path...>')
    .description('Markdown, text, HTML, PDF, folders of them, or an export (.jsonl); what is there already is passed over')
    .option('--agent <name>', 'whose the documents are', DEFAULT_AGENT)
    .option('--user <name>', "the user they belong to (default: nobody's)")
    .option('--media-type <type>', 'where the name does not say it, such as text/markdown')
    .option('--name <name>', 'what the document is called (default: its path)')
    .action((paths: string[], options: ImportOptions, command: Command) =>
      start(command, async (cli) => {
        const [first = ''] = paths;
        return (await isExport(paths)) ? importMemory(cli, first) : importDocuments(cli, paths, options);
      }),
    );
  exactly(memory.command('export'))
    .description('everything, lossless, as JSON Lines; with tests from the cases of tasks by the key of a reviewer alone')
    .option('--layer <layer>', 'episodic, semantic or procedural; repeatable (default: all)', repeated)
    .option('-o, --output <file>', 'default: stdout')
    .action((options: ExportOptions, command: Command) => start(command, (cli) => exportMemory(cli, options)));
  const documents = memory.command('documents').description('what was imported');
  whose(documents.command('list'))
    .description('names, titles and numbers of chunks')
    .option('--limit <n>', 'how many', integer(1, 100_000), 100)
    .action((options: WhoseOptions & { limit: number }, command: Command) => start(command, (cli) => listDocuments(cli, options)));
  documents
    .command('delete <document>')
    .description('with its chunks')
    .action((id: string, _options: object, command: Command) => start(command, (cli) => deleteDocument(cli, id)));
}

function addUpkeep(memory: Command, start: Start): void {
  exactly(memory.command('archive'))
    .description('take what has little worth out of retrieval, and keep it')
    .option('--score-max <x>', 'what scores below, by importance, age and use (default: 0.2)', fraction)
    .option('--older-than-days <n>', 'default: 30', integer(0, 36_500))
    .option('--layer <layer>', 'repeatable (default: all)', repeated)
    .option('--dry-run', 'say what would be archived')
    .action((options: ArchiveOptions, command: Command) => start(command, (cli) => archiveMemory(cli, options)));
  exactly(memory.command('restore [ids...]'))
    .description('bring back what was archived (default: all of it)')
    .action((ids: string[], options: WhoseOptions, command: Command) => start(command, (cli) => restoreMemory(cli, ids, options)));
  memory
    .command('erase')
    .description('remove every trace of an agent, a user or the tenant for good, and print a receipt')
    .option('--agent <name>', 'of this agent')
    .option('--user <name>', 'of this user')
    .option('--tenant <name>', 'all of the tenant, named to confirm it')
    .option('--yes', 'really')
    .option('--detach', 'do not wait for its end')
    .option('--request-id <id>', 'makes a repeat harmless')
    .action((options: EraseOptions, command: Command) => start(command, (cli) => eraseMemory(cli, options)));
  memory
    .command('erasure <id>')
    .description('the receipt of an erasure')
    .action((id: string, _options: object, command: Command) => start(command, (cli) => showErasure(cli, id)));
  memory
    .command('reembed')
    .description('for operators: move to another embedder while everything goes on; without --to and --drop, say how far it is')
    .option('--to <model>', 'sentence, lexical, or a model of the embeddings server')
    .option('--dimension <n>', 'of its vectors, where that is not known', integer(1, 65_536))
    .option('--drop <model>', 'drop the vectors of this one, after --to where that is given')
    .option('--stop', 'stop; the same command goes on later')
    .option('--detach', 'do not wait for its end')
    .action((options: ReembedOptions, command: Command) => start(command, (cli) => reembed(cli, options)));
  memory
    .command('reconcile')
    .description('for operators: look for half-written things and mend them')
    .action((_options: object, command: Command) => start(command, reconcileMemory));
}

/** `memory`: what is remembered. */
export function addMemory(program: Command, start: Start): void {
  const memory = program.command('memory').description('what is remembered: episodes, facts, documents, skills');
  addReading(memory, start);
  addWriting(memory, start);
  addTransfer(memory, start);
  addUpkeep(memory, start);
  addCalibrate(memory, start);
}
