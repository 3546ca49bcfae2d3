import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeText, encodeText } from './record-points.js';

/** Any code units, halves of surrogate pairs too. */
const anything = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 30 }).map((units) => String.fromCharCode(...units));

describe('exact text', () => {
  it('comes back as it was, and is always well formed', () => {
    fc.assert(
      fc.property(anything, (text) => {
        expect(encodeText(text).isWellFormed()).toBe(true);
        expect(decodeText(encodeText(text))).toBe(text);
      }),
    );
  });

  it('keeps what looks like the coding of another text', () => {
    expect(decodeText(encodeText(encodeText('\ud800')))).toBe(encodeText('\ud800'));
    expect(encodeText('plain')).toBe('plain');
  });
});
