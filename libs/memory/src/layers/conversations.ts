import type { FindPage, RecordStore, StoredRecord } from '../record-store.js';
import {
  conversationId,
  conversationOf,
  conversationRecord,
  loadConversation,
  readConversations,
  turnKey,
  turnOf,
  turnRecord,
  UNREAD,
} from './conversation-records.js';
import { LAYER } from './fact-records.js';
import type { SettlingDeps } from './fact-settling.js';
import { type LayerDeps, parseBody, putRecord, untilTaken, withTaken } from './records.js';
import { insertMissing, loadNote, markApplied } from './repeats.js';
import type { SemanticOptions } from './semantic-layer.js';
import { type Conversation, type Message, type Turn, TURNS_MAX } from '@etude/contracts/conversation';
import { EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import { type MemoryHit, type ReadScope, type SemanticMemory, wholeTenant } from '@etude/domain/ports/memory';
import { speakerOf } from '@etude/domain/recall/turn-text';
import { cut } from '@etude/domain/retrieval/entries';

/** Messages to add to one conversation, which may be new. */
export interface Addition extends Pick<Conversation, 'scope' | 'name' | 'title'> {
  readonly messages: readonly Message[];
  /** The id of the request. Its repeats have the same id. */
  readonly writeId: string;
  /** Index of the first message in the conversation, from 0. Messages stored there must be equal. null: appends the messages. */
  readonly first: number | null;
  /** ms since 1970 */
  readonly at: number;
}

export interface AddedTurns {
  readonly conversation: Conversation;
  /** Index in the conversation, from 0, of the first of these messages. */
  readonly first: number;
  /** `added`: the conversation is new. `unchanged`: all messages were already stored. */
  readonly outcome: 'added' | 'appended' | 'unchanged';
}

/** Number of previous turns that are indexed with a turn. Measured in docs/retrieval.md. */
const PREVIOUS = 2;
const PREVIOUS_CHARS_MAX = 300;

/** Conversations and their turns, which are found by searches of the semantic layer. */
export function conversationLayer(deps: LayerDeps, facts: Pick<SemanticMemory, 'applyFacts'>, { onUnsettled }: SemanticOptions = {}) {
  const { store } = deps;
  return {
    async add(addition: Addition, signal?: AbortSignal): Promise<AddedTurns> {
      const added = await addToConversation(deps, addition, signal);
      if (added.outcome !== 'unchanged') await onUnsettled?.(addition.scope.tenant);
      return added;
    },
    unread: (tenant: string) => store.count({ tenant }, LAYER, UNREAD),
    read: (tenant: string, reading: SettlingDeps) => readConversations(deps, facts, tenant, reading),
    /** Conversations in the order of their ids, starting after the id `afterKey`. */
    list: async (scope: ReadScope, page: Page) =>
      (await store.find(scope, LAYER, { kinds: ['conversation'] }, { order: 'key', ...page })).map(conversationOf),
    async get(scope: ReadScope, id: string): Promise<Conversation | null> {
      const record = await loadConversation(store, scope, id);
      return record === null ? null : conversationOf(record);
    },
    /** Turns in their order, starting after the turn `afterKey`. */
    turns: async (scope: ReadScope, id: string, page: Page) =>
      (await store.find(scope, LAYER, { kinds: ['turn'], where: { document: id } }, { order: 'key', ...page })).map(turnOf),
  };
}

type Page = Pick<FindPage, 'limit' | 'afterKey'>;

/**
 * Adds messages to a conversation. Each becomes a turn of its own, even if an equal turn is stored. Reserves the indexes first and then
 * stores the turns. So concurrent additions get different indexes, and a repeat after a crash completes the first try.
 *
 * @throws EtudeError ALREADY_EXISTS if an index has another message; FAILED_PRECONDITION if `first` leaves a gap, or for too many turns; an
 *   AbortError, between batches, when `signal` aborts
 */
async function addToConversation(deps: LayerDeps, addition: Addition, signal?: AbortSignal): Promise<AddedTurns> {
  const { scope, writeId, at } = addition;
  const known = await loadConversation(deps.store, scope, conversationId(scope, addition.name));
  if (addition.first !== null) await requireSame(deps.store, addition, addition.first);
  const noted = addition.first === null ? await loadNote(deps.store, scope.tenant, LAYER, writeId) : null;
  if (noted !== null && known !== null)
    return { conversation: conversationOf(known), first: Number(noted.sources[0]), outcome: 'unchanged' };
  const { conversation, first, isNew } = await takePlaces(deps.store, addition);
  const inserted = await insertMissing(deps, (await turnsOf(deps.store, addition, first)).map(turnRecord), signal);
  // Another addition may have stored other messages under these indexes meanwhile.
  await requireSame(deps.store, addition, first);
  if (addition.first === null) await deps.store.write(scope.tenant, [markApplied(LAYER, scope, writeId, at, [String(first)])]);
  return { conversation, first, outcome: inserted === 0 ? 'unchanged' : isNew ? 'added' : 'appended' };
}

const NEIGHBOURS = 2;
const NEIGHBOUR_CHARS_MAX = 300;

/** Adds to each turn among the hits its speaker, its index, and the beginnings of the turns around it. */
export async function withNeighbours(store: RecordStore, scope: ReadScope, hits: readonly MemoryHit[]): Promise<readonly MemoryHit[]> {
  const keys = new Set(hits.filter(({ kind }) => kind === 'turn').flatMap(({ id }) => keysAround(id)));
  if (keys.size === 0) return hits;
  const records = await store.load(scope, LAYER, 'turn', [...keys]);
  const turns = new Map(records.map((record) => [record.key, turnOf(record)]));
  return hits.map((hit) => {
    const turn = hit.kind === 'turn' ? turns.get(hit.id) : undefined;
    if (turn === undefined) return hit;
    const near = keysAround(hit.id).flatMap((key) => turns.get(key) ?? []);
    const shown = near.map((one) => ({ ...one, text: cut(one.text, NEIGHBOUR_CHARS_MAX) }));
    const [before, after] = [shown.filter(({ index }) => index < turn.index), shown.filter(({ index }) => index > turn.index)];
    return { ...hit, turn: { ...turn, text: '' }, before, after };
  });
}

function keysAround(id: string): readonly string[] {
  const [conversation = '', index = ''] = id.split('.');
  const places = Array.from({ length: 2 * NEIGHBOURS + 1 }, (_, at) => Number(index) + at - NEIGHBOURS);
  return places.filter((place) => place >= 0).map((place) => turnKey(conversation, place));
}

/** Reserves indexes for the messages. A repeat of the request gets the indexes of its first try. */
async function takePlaces(store: RecordStore, addition: Addition) {
  const { scope, name, writeId, messages, at } = addition;
  const id = conversationId(scope, name);
  return untilTaken(`conversation ${id}`, async () => {
    const record = await loadConversation(store, scope, id);
    const { value, taken } = record === null ? { value: null, taken: [] } : parseBody<Conversation>(record);
    const turns = value?.turns ?? 0;
    const earlier = taken.find((one) => one.startsWith(`${writeId} `));
    const first = addition.first ?? (earlier === undefined ? turns : Number(earlier.slice(writeId.length + 1)));
    if (first > turns)
      throw refused(`"first" is ${first}, but the conversation has only ${turns} messages; add the missing ones before these`);
    const end = Math.max(turns, first + messages.length);
    if (end > TURNS_MAX) throw refused(`a conversation may have at most ${TURNS_MAX} turns; begin another conversation`);
    if (value !== null && end === turns) return { conversation: value, first, isNew: false };
    const title = addition.title === '' ? (value?.title ?? '') : addition.title;
    const conversation = { ...value, id, scope, name, title, turns: end, createdAt: value?.createdAt ?? at, updatedAt: at };
    const next = conversationRecord(conversation, withTaken(taken, `${writeId} ${first}`));
    return (await putRecord(store, next, record)) ? { conversation, first, isNew: value === null } : null;
  });
}

async function turnsOf(store: RecordStore, { scope, name, messages, at }: Addition, first: number): Promise<readonly Turn[]> {
  const conversation = conversationId(scope, name);
  const places = Array.from({ length: PREVIOUS }, (_, n) => first - PREVIOUS + n).filter((place) => place >= 0);
  const keys = places.map((place) => turnKey(conversation, place));
  const before = await loadTurns(store, scope, keys);
  const said: Message[] = [...before.values()].map(turnOf);
  return messages.map((message, n) => {
    const index = first + n;
    const lines = said.slice(-PREVIOUS).map((one) => `${speakerOf(one)}: ${cut(one.text, PREVIOUS_CHARS_MAX)}`);
    said.push(message);
    const previous = lines.join('\n');
    return { ...message, id: turnKey(conversation, index), scope, conversation, index, previous, createdAt: at };
  });
}

/** @throws EtudeError ALREADY_EXISTS if a stored turn differs from the message for its index */
async function requireSame(store: RecordStore, { scope, name, messages }: Addition, first: number): Promise<void> {
  const keys = messages.map((_, n) => turnKey(conversationId(scope, name), first + n));
  const there = await loadTurns(store, scope, keys);
  for (const [n, key] of keys.entries()) {
    const [known, message] = [there.get(key), messages[n]!];
    const told: Message | null = known === undefined ? null : turnOf(known);
    if (told === null || (['role', 'name', 'text', 'at'] as const).every((part) => told[part] === message[part])) continue;
    const text = `the conversation already has another message at index ${first + n}; leave out "first" to append, or name another conversation`;
    throw new EtudeError('ALREADY_EXISTS', text, { field: 'first' });
  }
}

const refused = (message: string) => new EtudeError('FAILED_PRECONDITION', `${message}.`, { field: 'first' });

async function loadTurns(store: RecordStore, scope: Scope, keys: readonly string[]): Promise<ReadonlyMap<string, StoredRecord>> {
  const records = await store.load(wholeTenant(scope), LAYER, 'turn', keys);
  return new Map(records.map((record) => [record.key, record]));
}
