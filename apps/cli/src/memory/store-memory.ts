import type { JsonObject } from '@bufbuild/protobuf';
import {
  ListFactHistoryResponseSchema,
  ListRecentEpisodesResponseSchema,
  MemoryRecordSchema,
  StoreFactResponseSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { readArgument } from '../files.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { readEpisode } from './episode-file.js';
import { wholeJson } from './memory-json.js';
import { recordText } from './memory-lines.js';
import type { WhoseOptions } from './search-memory.js';

export interface OwnerOptions {
  readonly agent: string;
  readonly user?: string;
  readonly requestId?: string;
}

export interface FactOptions extends OwnerOptions {
  readonly category?: string;
  readonly confidence?: number;
  readonly source?: string;
  readonly subject?: string;
}

const OUTCOMES: Readonly<Record<string, string>> = {
  added: 'stored',
  reinforced: 'was known, and is reinforced',
  superseded: 'stored, and took the place of',
  unchanged: 'was stored by this request before',
};

export function storeFact(cli: Cli, argument: string, options: FactOptions): Promise<number> {
  const { agent, user = '', requestId = '', category = '', confidence, source = '', subject = '' } = options;
  return withGateway(cli, async (gateway) => {
    const text = await readArgument(argument);
    const request = { text, agent, user, requestId, category, confidence, source, subject };
    const stored = await gateway.memory.storeFact(request, callSettings(cli));
    const said = [OUTCOMES[stored.outcome] ?? stored.outcome, ...stored.replaced].join(' ');
    cli.out.data(wholeJson(StoreFactResponseSchema, stored), `${stored.fact?.id ?? ''}  ${said}`);
    return EXIT.ok;
  });
}

export function storeEpisode(cli: Cli, argument: string, { agent, user = '', requestId = '' }: OwnerOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const { context, actions, outcomes, skills_used: skillsUsed, reflection, importance } = readEpisode(await readArgument(argument));
    const told = { context, actions, outcomes: outcomes as JsonObject[], skillsUsed, reflection, importance };
    const stored = await gateway.memory.storeEpisode({ ...told, agent, user, requestId }, callSettings(cli));
    cli.out.data(wholeJson(MemoryRecordSchema, stored), `${stored.id}  stored`);
    return EXIT.ok;
  });
}

export function storeProcedure(cli: Cli, name: string, argument: string, options: OwnerOptions): Promise<number> {
  const { agent, user = '', requestId = '' } = options;
  return withGateway(cli, async (gateway) => {
    const prompt = await readArgument(argument);
    const stored = await gateway.memory.storeProcedure({ name, prompt, agent, user, requestId }, callSettings(cli));
    const status = stored.fields?.['status'];
    const waits = typeof status !== 'string' || status === 'active' ? '' : `; it is ${status}, and used once it is approved`;
    cli.out.data(wholeJson(MemoryRecordSchema, stored), `${stored.id}  stored${waits}`);
    return EXIT.ok;
  });
}

export interface UpdateOptions {
  readonly text?: string;
  readonly confidence?: number;
}

export function updateFact(cli: Cli, id: string, { text, confidence }: UpdateOptions): Promise<number> {
  const paths = [...(text === undefined ? [] : ['text']), ...(confidence === undefined ? [] : ['confidence'])];
  if (paths.length === 0) throw new CliError(EXIT.usage, 'say what to change: --text, --confidence, or both');
  return withGateway(cli, async (gateway) => {
    const request = { id, text: text ?? '', confidence: confidence ?? 0, updateMask: { paths } };
    const fact = await gateway.memory.updateFact(request, callSettings(cli));
    cli.out.data(wholeJson(MemoryRecordSchema, fact), recordText(fact));
    return EXIT.ok;
  });
}

export function factHistory(cli: Cli, id: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const history = await gateway.memory.listFactHistory({ id }, callSettings(cli));
    cli.out.data(wholeJson(ListFactHistoryResponseSchema, history), history.facts.map(recordText).join('\n'));
    return EXIT.ok;
  });
}

export interface RecentOptions extends WhoseOptions {
  readonly days?: number;
  readonly limit?: number;
  readonly skill?: string;
}

export function recentEpisodes(cli: Cli, { agent = '', user = '', days = 0, limit = 0, skill = '' }: RecentOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const found = await gateway.memory.listRecentEpisodes({ agent, user, days, limit, skill }, callSettings(cli));
    cli.out.data(wholeJson(ListRecentEpisodesResponseSchema, found), found.episodes.map(recordText).join('\n'));
    if (found.episodes.length === 0) cli.out.note('no episodes');
    return EXIT.ok;
  });
}
