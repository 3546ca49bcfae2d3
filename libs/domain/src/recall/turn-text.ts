import type { Message, Turn } from '@etude/contracts/conversation';
import type { MemoryHit } from '../ports/memory.js';
import { searchableText } from '../retrieval/entries.js';

/** The name of who speaks, or the role. */
export const speakerOf = ({ name, role }: Pick<Message, 'name' | 'role'>) => (name === '' ? role : name);

/** The day of a message in UTC, such as "2026-05-03"; empty if its time is unknown. */
export const dayOf = ({ at }: Pick<Message, 'at'>) => (at === null ? '' : new Date(at).toISOString().slice(0, 10));

/** One line of a transcript: "Ann (2026-05-03): The boat is at the shed." */
export function transcriptLine(turn: Pick<Turn, 'name' | 'role' | 'at' | 'text'>): string {
  const day = dayOf(turn);
  return `${speakerOf(turn)}${day === '' ? '' : ` (${day})`}: ${turn.text}`;
}

/** The text of a hit for a prompt: a turn with those around it as a transcript, any other hit as it is. */
export function shownText({ text, turn, before = [], after = [] }: Pick<MemoryHit, 'text' | 'turn' | 'before' | 'after'>): string {
  return turn === undefined ? text : [...before, { ...turn, text }, ...after].map(transcriptLine).join('\n');
}

/** The texts by which search finds a turn: what was said by whom and when, alone and together with the turn before it. */
export function turnTexts(turn: Turn): readonly string[] {
  const line = searchableText(transcriptLine(turn));
  return turn.previous === '' ? [line] : [line, searchableText(`${turn.previous}\n${line}`)];
}
