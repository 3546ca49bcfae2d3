import type { Message, Turn } from '@etude/contracts/conversation';
import type { MemoryHit } from '../ports/memory.js';
import { queryWordsOf, STOP_WORDS } from '../retrieval/words.js';

export const speakerOf = ({ name, role }: Pick<Message, 'name' | 'role'>) => (name === '' ? role : name);

const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });

/** The day of a message in UTC, such as "3 May 2026", as questions write it. Empty if the time is unknown. */
export const dayOf = ({ at }: Pick<Message, 'at'>) => (at === null ? '' : DAY.format(at));

/** One line of a transcript: "Ann (3 May 2026): The boat is at the shed." */
export function transcriptLine(turn: Pick<Turn, 'name' | 'role' | 'at' | 'text'>): string {
  const day = dayOf(turn);
  return `${speakerOf(turn)}${day === '' ? '' : ` (${day})`}: ${turn.text}`;
}

/** The text of a hit for a prompt. A turn is shown as a transcript, together with the turns around it. */
export function shownText({ text, turn, before = [], after = [] }: Pick<MemoryHit, 'text' | 'turn' | 'before' | 'after'>): string {
  return turn === undefined ? text : [...before, { ...turn, text }, ...after].map(transcriptLine).join('\n');
}

/** Small embedding models read about this many characters of a text. */
const PIECE_CHARS = 1_000;
const PIECES = new RegExp(`[^]{1,${PIECE_CHARS}}(?:\\s|$)|[^]{1,${PIECE_CHARS}}`, 'gu');

/**
 * The texts that are indexed for a turn: first the turn alone, with speaker and date, then the turn together with the turns before it. An answer
 * alone often doesn't name its subject. A long turn is split into pieces, so that each piece can be found.
 */
export function turnTexts(turn: Turn): readonly string[] {
  const [first = '', ...rest] = (turn.text.match(PIECES) ?? []).map((text) => transcriptLine({ ...turn, text }));
  return turn.previous === '' ? [first, ...rest] : [first, `${turn.previous}\n${first}`, ...rest];
}

/** Whether a question names this speaker, or uses a part of the name. */
export function namesSpeaker(question: string, turn: Pick<Message, 'name' | 'role'>): boolean {
  const asked = new Set(queryWordsOf(question).map(({ text }) => text));
  return queryWordsOf(speakerOf(turn)).some(({ text }) => !STOP_WORDS.has(text) && asked.has(text));
}
