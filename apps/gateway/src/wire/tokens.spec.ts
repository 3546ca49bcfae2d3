import fc from 'fast-check';
import { expect, it } from 'vitest';
import { afterPageToken, eventIdOf, pageToken } from './names.js';

it('gives back where a page ended, for the same filter only', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 100 }), fc.jsonValue(), (after, filter) => {
      const token = pageToken(after, filter);
      expect(afterPageToken(token, filter)).toBe(after);
      expect(() => afterPageToken(token, { filter, more: true })).toThrow('page_token');
    }),
  );
});

it('takes no text for a token that it did not make, and throws nothing else', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      expect(() => afterPageToken(text, null)).toThrow('page_token');
      expect(() => eventIdOf(text, 't0192f0c8a1b2')).toThrow('resume_token');
    }),
  );
});
