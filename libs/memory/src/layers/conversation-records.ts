import type { MemoryRecord, RecordStore, StoredRecord } from '../record-store.js';
import { LAYER } from './fact-records.js';
import { bodyOf, parseBody, loadOne } from './records.js';
import type { Conversation, Turn } from '@etude/contracts/conversation';
import type { Scope } from '@etude/contracts/memory';
import type { ReadScope } from '@etude/domain/ports/memory';
import { dayOf, speakerOf } from '@etude/domain/recall/turn-text';
import { contentDigest } from '@etude/domain/skills/content-digest';

const INDEX_DIGITS = 7;

/** The conversation that an owner calls by this name. The same in every tenant, so that an export can be imported elsewhere. */
export function conversationId({ agent, user }: Scope, name: string): string {
  return `c${contentDigest(['conversation', agent, user, name]).slice(0, 32)}`;
}

export function turnKey(conversation: string, index: number): string {
  return `${conversation}.${String(index).padStart(INDEX_DIGITS, '0')}`;
}

export const conversationOf = (record: StoredRecord) => parseBody<Conversation>(record).value;
export const turnOf = (record: StoredRecord) => parseBody<Turn>(record).value;

export const loadConversation = (store: RecordStore, scope: ReadScope, id: string) => loadOne(store, scope, LAYER, 'conversation', id);

/** Both have the highest worth, since nothing measures how useful a turn is. */
const WORTH = 1;

export function conversationRecord(conversation: Conversation, taken: readonly string[]): MemoryRecord {
  const { id, scope, name, title, turns, read = 0, createdAt } = conversation;
  const named = { layer: LAYER, kind: 'conversation', key: id, scope, createdAt, worth: WORTH, shown: false } as const;
  const status = read < turns ? { status: 'unread' } : {};
  return { ...named, fields: { id, ...status }, title, text: name, sources: [], body: bodyOf(conversation, taken) };
}

export function turnRecord(turn: Turn, taken: readonly string[]): MemoryRecord {
  const { id, scope, conversation, text, createdAt } = turn;
  const named = { layer: LAYER, kind: 'turn', key: id, scope, createdAt, worth: WORTH, shown: true } as const;
  const title = [speakerOf(turn), dayOf(turn)].filter((part) => part !== '').join(', ');
  return { ...named, fields: { id, document: conversation }, title, text, sources: [], body: bodyOf(turn, taken) };
}
