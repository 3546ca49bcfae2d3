import type { LayerQuery, Memory, PlainRecord, ProceduralLayer, RecallRequest, RecordListQuery } from '../memory.js';
import { LAYERS, RECORD_KINDS, type RecordKind, type RecordStore, type StoredRecord } from '../record-store.js';
import { idOf } from './memory-search.js';
import { parseBody } from './records.js';
import { type ReadScope, requireScope, type FoundSkill } from '@etude/domain/ports/memory';
import { GLOBAL_TENANT, TENANT_AGENT } from '@etude/contracts/ids';
import { RECALL_TOKENS, recollect } from '@etude/domain/recall/recollect';
import { searchSkills, viewOf } from '@etude/domain/skills/life/find-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';

type Layer = Parameters<Memory['get']>[1];

/** Kinds that search finds in each layer. If several records have the same id, the first kind wins. */
const FOUND_KINDS: Readonly<Record<Layer, readonly RecordKind[]>> = {
  episodic: ['episode', 'transition'],
  semantic: ['fact', 'chunk', 'document', 'summary', 'reflection', 'conversation', 'turn'],
};

export async function getRecord(store: RecordStore, scope: ReadScope, layer: Layer, id: string): Promise<PlainRecord | null> {
  const kinds = FOUND_KINDS[layer];
  const found = await store.find(scope, layer, { kinds, where: { id } }, { order: 'newest', limit: kinds.length });
  const known = found.length > 0 ? found : (await Promise.all(kinds.map((kind) => store.load(scope, layer, kind, [id])))).flat();
  const [record] = known.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
  return record === undefined ? null : plainRecord(record);
}

/** Records per request to the store. Small, because a record can have several MiB. */
const STEP = 32;
/** A page ends once its records have this many characters. */
const PAGE_CHARS = 8_000_000;

export async function listRecords(store: RecordStore, scope: ReadScope, query: RecordListQuery) {
  const { kind, category, all = false, limit } = query;
  const layer = LAYERS.find((one) => (RECORD_KINDS[one] as readonly RecordKind[]).includes(kind))!;
  // Search finds chunks and turns, never the document or conversation itself.
  const shown = all || kind === 'document' || kind === 'conversation' ? {} : { shown: true };
  const filter = { kinds: [kind], where: category === undefined ? {} : { category }, ...shown };
  const records: StoredRecord[] = [];
  let [next, chars] = [query.after, 0];
  while (records.length < limit && chars < PAGE_CHARS) {
    const size = Math.min(STEP, limit - records.length);
    const found = await store.find(scope, layer, filter, { order: 'newest', limit: size + 1, after: next });
    records.push(...found.slice(0, size));
    const last = records.at(-1);
    if (found.length <= size || last === undefined) return { records: records.map(plainRecord), next: null };
    next = { createdAt: last.createdAt, key: last.key };
    chars += found.reduce((sum, { body }) => sum + body.length, 0);
  }
  return { records: records.map(plainRecord), next: next ?? null };
}

function plainRecord(record: StoredRecord): PlainRecord {
  const { layer, kind, scope } = record;
  const { value: fields } = parseBody<{ readonly createdAt: number }>(record);
  // The record of a skill has the time of its last change; its body has the time when it was made.
  return { id: idOf(record), layer, kind, scope, createdAt: fields.createdAt, fields };
}

/** Summaries aren't included: they stand for episodes, which are recalled as experiences. */
const KNOWLEDGE = ['fact', 'chunk', 'turn', 'reflection'] as const;

/** If the scope names an agent, one offer is counted for each returned skill. */
export async function recallMemory(
  { episodic, semantic, procedural, shows: counters }: Pick<Memory, 'episodic' | 'semantic' | 'procedural' | 'shows'>,
  scope: ReadScope,
  request: RecallRequest,
  { partial = false }: { readonly partial?: boolean } = {},
) {
  requireScope(scope);
  const { context: cue, facts = 5, experiences = 3, procedures = 3, tokensMax = RECALL_TOKENS } = request;
  const knowledge: typeof semantic.search = (within, query) => semantic.search(within, { ...query, kinds: KNOWLEDGE });
  const counts = { semantic: facts, episodic: experiences, procedural: procedures };
  const search: typeof procedural.search = (within, query) => readableSkills(procedural, within, query);
  const layers = { episodic, semantic: { search: knowledge }, procedural: { search }, counters };
  const floor = request.similarityMin === undefined ? {} : { similarityMin: request.similarityMin };
  const { hits, skills, tokens, missing } = await recollect({ scope, cue, counts, tokensMax, partial, ...floor }, layers);
  const of = (layer: keyof typeof counts) => hits.filter((hit) => hit.layer === layer);
  if (scope.agent !== null && skills.length > 0) await procedural.countOffers(skills.map(keyOf));
  return { facts: of('semantic'), experiences: of('episodic'), procedures: of('procedural'), tokens, missing };
}

/**
 * The skills that a reader may use, best first: the agent's own, the user's, and those shared with the tenant or with everybody. A scope without an
 * agent covers the skills of all agents of the tenant and the global skills. A scope without a user covers only skills that belong to no user.
 */
export async function readableSkills(
  procedural: Pick<ProceduralLayer, 'search'>,
  scope: ReadScope,
  query: LayerQuery,
): Promise<readonly FoundSkill[]> {
  const { tenant, agent, user = null } = scope;
  if (agent !== null) return searchSkills(procedural, { tenant, agent, user }, query);
  const everyAgents = { ...viewOf({ tenant, agent: '' }, user), agent: null };
  const everybodys = viewOf({ tenant: GLOBAL_TENANT, agent: TENANT_AGENT }, null);
  const found = await Promise.all([everyAgents, everybodys].map((view) => procedural.search(view, query)));
  return found
    .flat()
    .toSorted((a, b) => b.score - a.score)
    .slice(0, query.limit);
}
