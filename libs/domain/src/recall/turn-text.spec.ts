import { expect, it } from 'vitest';
import { NEW_YEAR, SCOPE } from '../../test/memory-records.js';
import { namesSpeaker, transcriptLine, turnTexts } from './turn-text.js';

const turnOf = (text: string, { name = 'Ann Lee', previous = '' } = {}) => {
  const said = { role: 'user', name, text, at: Date.UTC(2026, 7, 14, 23) };
  return { ...said, id: 'c1.0000000', scope: SCOPE, conversation: 'c1', index: 0, previous, createdAt: NEW_YEAR };
};

it('is found by speaker and date, alone and with the turn before it', () => {
  const texts = turnTexts(turnOf('At the shed.', { previous: 'Ben: Where is it?' }));
  expect(texts).toEqual(['Ann Lee (14 August 2026): At the shed.', 'Ben: Where is it?\nAnn Lee (14 August 2026): At the shed.']);
  expect(transcriptLine({ ...turnOf('Yes.', { name: '' }), at: null })).toBe('user: Yes.');
});

it('is cut into pieces of whole characters that hold all of its words', () => {
  const words = Array.from({ length: 900 }, (_, n) => (n % 9 === 0 ? `${n}😀` : `word${n}`));
  for (const text of [words.join(' '), '😀'.repeat(1_500)]) {
    const pieces = turnTexts(turnOf(text)).map((piece) => piece.replace(/^[^:]*: /, ''));
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join('')).toBe(text);
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
  }
});

it.each([
  ["Where did Ann's boat go?", true],
  ['what did LEE say', true],
  ['where is the boat', false],
  ['where is Anna', false],
])('is by the speaker that %j names: %s', (question, isNamed) => {
  expect(namesSpeaker(question, turnOf('Here.'))).toBe(isNamed);
});
