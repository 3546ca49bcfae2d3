import {
  type MemoryRecord,
  MemoryRecordSchema,
  RecallResponseSchema,
  SearchMemoryResponseSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { status } from '@grpc/grpc-js';
import { type Cli, withGateway } from '../cli.js';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import type { Gateway } from '../gateway.js';
import { isServiceError } from '../grpc-errors.js';
import { plural } from '../output.js';
import { callSettings } from '../sandbox/manage-sandboxes.js';
import { wholeJson } from './memory-json.js';
import { hitLines, recallLines, recordText } from './memory-lines.js';

export const MEMORY_LAYERS = ['episodic', 'semantic', 'procedural'] as const;

export interface WhoseOptions {
  readonly agent?: string;
  readonly user?: string;
}

export interface SearchOptions extends WhoseOptions {
  readonly layer?: readonly string[];
  readonly kind?: readonly string[];
  readonly limit: number;
  readonly explain?: boolean;
  readonly importanceMin?: number;
  readonly successRateMin?: number;
  readonly similarityMin?: number;
  readonly category?: string;
  readonly archived?: boolean;
  readonly rerank?: boolean;
  readonly partial?: boolean;
}

function noteMissing(cli: Cli, layers: readonly string[]): void {
  if (layers.length > 0) cli.out.note(`could not be searched now, and are missing: ${layers.join(', ')}`);
}

/** A new procedure has a success rate of 0.5, and is not offered before it proved itself. */
function nothingFound(layers: readonly string[], { importanceMin, successRateMin }: SearchOptions): string {
  const [only = ''] = layers.length === 1 ? layers : [];
  if (only === 'procedural' && successRateMin === undefined)
    return 'nothing found; --success-rate-min 0 shows also what did not prove itself yet';
  if (only === 'episodic' && importanceMin === undefined) return 'nothing found; --importance-min 0 shows also what matters little';
  return 'nothing found';
}

export function searchMemory(cli: Cli, query: string, options: SearchOptions): Promise<number> {
  const { layer = [], kind = [], agent = '', user = '', category = '' } = options;
  const { explain = false, archived = false, rerank = false, partial = false } = options;
  const { limit, importanceMin, successRateMin, similarityMin } = options;
  const narrowed = { importanceMin, successRateMin, similarityMin };
  return withGateway(cli, async (gateway) => {
    const request = { query, layers: [...layer], kinds: [...kind], agent, user, category, limit, explain, archived, rerank, partial };
    const found = await gateway.memory.searchMemory({ ...request, ...narrowed }, callSettings(cli));
    cli.out.data(wholeJson(SearchMemoryResponseSchema, found), hitLines(found.hits));
    noteMissing(cli, found.missingLayers);
    if (found.hits.length === 0) cli.out.note(nothingFound(layer, options));
    return EXIT.ok;
  });
}

export const TOKENS_USUAL = 2_000;

export interface RecallOptions extends WhoseOptions {
  readonly facts?: number;
  readonly experiences?: number;
  readonly procedures?: number;
  readonly tokens: number;
  readonly partial?: boolean;
}

/** Whether the budget is to blame that nothing was recalled: asks once more, with the usual one. */
async function fitsNothing(cli: Cli, gateway: Gateway, request: { readonly tokensMax: number }): Promise<boolean> {
  if (request.tokensMax >= TOKENS_USUAL) return false;
  const { facts, experiences, procedures } = await gateway.memory.recall({ ...request, tokensMax: TOKENS_USUAL }, callSettings(cli));
  return facts.length + experiences.length + procedures.length > 0;
}

export function recall(cli: Cli, context: string, options: RecallOptions): Promise<number> {
  const { agent = '', user = '', facts, experiences, procedures, tokens, partial = false } = options;
  return withGateway(cli, async (gateway) => {
    const request = { context, agent, user, facts, experiences, procedures, tokensMax: tokens, partial };
    const found = await gateway.memory.recall(request, callSettings(cli));
    const lines = recallLines(found);
    cli.out.data(wholeJson(RecallResponseSchema, found), lines);
    noteMissing(cli, found.missingLayers);
    if (lines !== '') cli.out.note(plural(found.tokens, 'token'));
    else
      cli.out.note(
        (await fitsNothing(cli, gateway, request))
          ? `nothing fits into ${plural(tokens, 'token')}; --tokens gives it more`
          : 'nothing recalled',
      );
    return EXIT.ok;
  });
}

/** Of one layer, or of whichever has it. @throws CliError where none has it */
async function findRecord(
  cli: Cli,
  gateway: Gateway,
  asked: { readonly id: string } & WhoseOptions,
  layers: readonly string[],
): Promise<MemoryRecord> {
  for (const layer of layers) {
    try {
      return await gateway.memory.getMemory({ ...asked, layer }, callSettings(cli));
    } catch (error) {
      if (layers.length === 1 || !isServiceError(error) || error.code !== status.NOT_FOUND) throw error;
    }
  }
  throw new CliError(EXIT.notFound, `no layer of memory has a record called ${JSON.stringify(asked.id)}`, [
    'memory search and memory recent print ids; a skill is called NAME or NAME@VERSION, and one of a user is there with --user',
  ]);
}

export interface GetOptions extends WhoseOptions {
  readonly layer?: string;
}

export function getMemory(cli: Cli, id: string, { layer, agent = '', user = '' }: GetOptions): Promise<number> {
  // Shared owners, such as @tenant, have skills alone.
  const usual = agent.startsWith('@') ? (['procedural'] as const) : MEMORY_LAYERS;
  return withGateway(cli, async (gateway) => {
    const record = await findRecord(cli, gateway, { id, agent, user }, layer === undefined ? usual : [layer]);
    cli.out.data(wholeJson(MemoryRecordSchema, record), recordText(record));
    return EXIT.ok;
  });
}
