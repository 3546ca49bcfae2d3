import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareCodePoints, decodeText, encodeText } from './record-payload.js';

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

  it('orders as bytes in UTF-8 do', () => {
    const whole = fc.string({ unit: 'binary', maxLength: 6 }).filter((text) => text.isWellFormed());
    fc.assert(
      fc.property(whole, whole, (a, b) => {
        expect(Math.sign(compareCodePoints(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });
});
