import { chargedTo } from '@etude/domain/ports/model';
import type { MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { LAYER } from './fact-records.js';
import { affordable, askWithin, type SettlingDeps } from './fact-settling.js';
import { bodyOf, type LayerDeps, loadOne, parseBody, putRecord, untilTaken } from './records.js';
import type { Conversation, Turn } from '@etude/contracts/conversation';
import type { Fact, Scope } from '@etude/contracts/memory';
import { type Note, promptTokens, readingRequest, readNotes } from '@etude/domain/facts/fact-prompts';
import type { ReadScope, SemanticMemory } from '@etude/domain/ports/memory';
import { dayOf, speakerOf } from '@etude/domain/recall/turn-text';
import { contentDigest } from '@etude/domain/skills/content-digest';

const INDEX_DIGITS = 7;

/** The id of the owner's conversation with this name. It doesn't depend on the tenant, so that an export can be imported elsewhere. */
export function conversationId({ agent, user }: Scope, name: string): string {
  return `c${contentDigest(['conversation', agent, user, name]).slice(0, 32)}`;
}

export function turnKey(conversation: string, index: number): string {
  return `${conversation}.${String(index).padStart(INDEX_DIGITS, '0')}`;
}

export const conversationOf = (record: StoredRecord) => parseBody<Conversation>(record).value;
export const turnOf = (record: StoredRecord) => parseBody<Turn>(record).value;

export const loadConversation = (store: RecordStore, scope: ReadScope, id: string) => loadOne(store, scope, LAYER, 'conversation', id);

/** The worth of conversations and turns. It is the highest, since nothing measures how useful they are. */
const WORTH = 1;

export function conversationRecord(conversation: Conversation, taken: readonly string[]): MemoryRecord {
  const { id, scope, name, title, turns, read = 0, createdAt } = conversation;
  const named = { layer: LAYER, kind: 'conversation', key: id, scope, createdAt, worth: WORTH, shown: false } as const;
  const status = read < turns ? { status: 'unread' } : {};
  return { ...named, fields: { id, ...status }, title, text: name, sources: [], body: bodyOf(conversation, taken) };
}

export function turnRecord(turn: Turn): MemoryRecord {
  const { id, scope, conversation, text, createdAt } = turn;
  const named = { layer: LAYER, kind: 'turn', key: id, scope, createdAt, worth: WORTH, shown: true } as const;
  const title = [speakerOf(turn), dayOf(turn)].filter((part) => part !== '').join(', ');
  return { ...named, fields: { id, document: conversation }, title, text, sources: [], body: bodyOf(turn) };
}

/** Conversations with turns from which no facts were extracted yet. */
export const UNREAD = { kinds: ['conversation'], where: { status: 'unread' } } as const;
const CONVERSATIONS = 100;
const WINDOW = 40;
/** An interrupted addition leaves a gap between turns. Its repeat fills the gap. After this time the gap is skipped. */
const GAP_WAIT_MS = 600_000;
const CONFIDENCE = 0.8;

/**
 * Lets the model extract facts from the unread turns of a tenant's conversations, several turns per call, until the budget is spent. The facts belong
 * to the conversation's owner and name the conversation as an untrusted origin. Progress is stored after each call, so a repeat reads only the rest.
 *
 * @throws EtudeError of the model: MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED; an AbortError when `signal` aborts
 */
export async function readConversations(deps: LayerDeps, facts: Pick<SemanticMemory, 'applyFacts'>, tenant: string, reading: SettlingDeps) {
  const report = { modelCalls: 0, facts: 0, left: 0 };
  const found = await deps.store.find({ tenant, agent: null }, LAYER, UNREAD, { order: 'newest', limit: CONVERSATIONS });
  for (const record of found) {
    if (!(await reading.isOn(record.scope.agent))) continue;
    for (let turns = await unreadTurns(deps, record); turns.length > 0; turns = await unreadTurns(deps, record)) {
      reading.signal.throwIfAborted();
      const asked = await affordable(turns, (some) => promptTokens(readingRequest(some)), reading);
      if (asked.length === 0) {
        report.left += turns.length;
        break;
      }
      report.modelCalls += 1;
      const notes = await notesOn(asked, reading);
      const last = asked.at(-1)!;
      const told = notes.map((note) => factFrom(note, deps.clock.now()));
      report.facts += (await facts.applyFacts(tenant, `read.${asked[0]!.id}.${last.index}`, told)).added;
      await markRead(deps.store, record, last.index + 1);
    }
  }
  return report;
}

/** The first unread turns, without a gap between them. */
async function unreadTurns({ store, clock }: LayerDeps, { key, scope }: StoredRecord): Promise<readonly Turn[]> {
  const record = await loadConversation(store, scope, key);
  if (record === null) return [];
  const { read = 0, updatedAt } = conversationOf(record);
  const page = { order: 'key', limit: WINDOW, afterKey: read === 0 ? undefined : turnKey(key, read - 1) } as const;
  const turns = (await store.find(scope, LAYER, { kinds: ['turn'], where: { document: key } }, page)).map(turnOf);
  const first = turns[0]?.index ?? read;
  if (first > read && updatedAt > clock.now() - GAP_WAIT_MS) return [];
  return turns.filter(({ index }, place) => index === first + place);
}

/** If the model's answer can't be read, these turns yield no facts. Search still finds the turns. */
async function notesOn(turns: readonly Turn[], reading: SettlingDeps): Promise<readonly Note[]> {
  const charged = { ...reading, model: chargedTo(reading.model, turns[0]!.scope, 'read') };
  const answer = await askWithin(charged, readingRequest(turns));
  return (answer === null ? null : readNotes(answer.text, turns)) ?? [];
}

function factFrom({ turn: { scope, conversation, at, createdAt }, text, about }: Note, now: number): Fact {
  const told = { id: '', scope, text, category: 'conversation', confidence: CONFIDENCE, source: 'conversation', episodes: [] };
  const counted = { support: 1, accessCount: 0, touched: [`conversations/${conversation}`] };
  // Facts are ordered by the time of the message, since an old conversation may be added after a new one.
  return { ...told, ...(about === '' ? {} : { subject: about }), ...counted, createdAt: now, validFrom: at ?? createdAt };
}

async function markRead(store: RecordStore, { key, scope }: StoredRecord, read: number): Promise<void> {
  await untilTaken(`conversation ${key}`, async () => {
    const record = await loadConversation(store, scope, key);
    if (record === null) return true;
    const { value, taken } = parseBody<Conversation>(record);
    const next = conversationRecord({ ...value, read: Math.max(read, value.read ?? 0) }, taken);
    return (await putRecord(store, next, record)) || null;
  });
}
