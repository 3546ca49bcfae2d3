import { expect, it } from 'vitest';
import { isVisible, VisibleText } from './visible-text.js';

it.each(['a', ' 0 ', '…', 'が', '\u200Ba', '👩\u200D🚀', 'e\u0301', '\uE000'])('accepts the visible text %j', (text) => {
  expect([isVisible(text), VisibleText.safeParse(text).success]).toEqual([true, true]);
});

it.each(['', ' \n\t', '\u200B', '\uFEFF\u2060', '\u00AD', '\u3164', '\u2800', '\u0000', '\uFE0F', '\u{E0041}', ' \u200D \u00A0'])(
  'refuses the invisible text %j',
  (text) => {
    expect([isVisible(text), VisibleText.safeParse(text).success]).toEqual([false, false]);
  },
);

it('explains why it refuses an invisible text', () => {
  const said = ['', '\u200B'].map((text) => VisibleText.safeParse(text).error?.issues[0]?.message);
  expect(said).toEqual(['must not be empty', expect.stringContaining('visible character')]);
});
